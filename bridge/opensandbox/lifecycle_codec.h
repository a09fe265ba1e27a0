// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/lifecycle_codec.h — the lifecycle server's JSON ↔ values.
//
// Readers are tolerant: null is absent, unknown fields are skipped, times may be spelled oddly, a
// state may be any word. They are not gullible: what identifies a thing (its id, an endpoint's
// text) or could be mistaken for something else (an expiry that cannot be read is not "never") must
// be there and readable. A reader fails with INVALID (kInvalidArgument, message = the problem in a
// few words, no part of the text); the client makes UPSTREAM_PROTOCOL of it. Pure; nothing throws.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

// --- Requests

// `spec` is complete: defaults are filled in and the bridge's labels are among its metadata.
std::string CreateSandboxJson(const CreateSpec& spec);
std::string RenewJson(absl::Time expires_at);
// A merge patch: what is in `remove` becomes null.
std::string MetadataPatchJson(const std::map<std::string, std::string>& set,
                              const std::vector<std::string>& remove);
std::string CreateSnapshotJson(std::string_view name);
std::string NetworkRulesJson(const std::vector<NetworkRule>& rules);
std::string TargetsJson(const std::vector<std::string>& targets);

// The one value of the list route's `metadata` parameter, not yet percent-encoded for the query:
// "team=core&example.org/run=r-2". What could split it is percent-encoded here, once.
std::string MetadataFilter(const std::map<std::string, std::string>& metadata);

// --- Answers

absl::StatusOr<SandboxRecord> ParseSandbox(std::string_view json);
absl::StatusOr<SandboxPage> ParseSandboxPage(std::string_view json);
// {"expiresAt": ...}; nullopt when the answer holds none.
absl::StatusOr<std::optional<absl::Time>> ParseRenewal(std::string_view json);
absl::StatusOr<RawEndpoint> ParseEndpointAnswer(std::string_view json);
absl::StatusOr<SnapshotRecord> ParseSnapshot(std::string_view json);
absl::StatusOr<SnapshotPage> ParseSnapshotPage(std::string_view json);
absl::StatusOr<NetworkPolicyStatus> ParseNetworkPolicy(std::string_view json);
// {"content": ...}, what diagnostics with a scope answer.
absl::StatusOr<std::string> ParseDiagnostics(std::string_view json);
// {"version": "1.1.1"}.
absl::StatusOr<std::string> ParseVersion(std::string_view json);
// execd's /metrics, and each line of /metrics/watch.
absl::StatusOr<ResourceSample> ParseResourceSample(std::string_view json);

}  // namespace bridge
