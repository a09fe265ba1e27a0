// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/upstream_error.h — from an HTTP error answer of the lifecycle server to a failure of
// the catalogue. One ordered list of rules decides, by status first; docs/upstream-errors.md is
// generated from it. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "bridge/base/error.h"
#include "bridge/net/http.h"
#include "bridge/opensandbox/error_body.h"

namespace bridge {

// The routes of the lifecycle server that the bridge uses.
enum class Route : uint32_t {
  kCreate = 1u << 0,
  kGet = 1u << 1,
  kList = 1u << 2,
  kDelete = 1u << 3,
  kPatchMetadata = 1u << 4,
  kPause = 1u << 5,
  kResume = 1u << 6,
  kRenew = 1u << 7,
  kEndpoint = 1u << 8,
  kSignedEndpoint = 1u << 9,
  kNetworkPolicy = 1u << 10,
  kDiagnostics = 1u << 11,
  kCreateSnapshot = 1u << 12,
  kGetSnapshot = 1u << 13,
  kListSnapshots = 1u << 14,
  kDeleteSnapshot = 1u << 15,
  kHealth = 1u << 16,
};

// "create", "renew expiration": for messages.
std::string_view RouteName(Route route);
// The capability that is missing when the server has no such route: "sandboxes.snapshots".
std::string_view RouteFeature(Route route);

// Whose words a body must be for a rule to apply.
enum class Speaker {
  kAnyone,
  kApplication,     // OpenSandbox' own error object
  kNotApplication,  // a page, bare text, a router's "Not Found", nothing
  kPage,            // HTML
  kLoginPage,       // HTML that asks people to sign in
};

struct UpstreamErrorRule {
  uint32_t routes;  // of Route; 0: all
  int status_from;
  int status_to;
  std::string_view code_end;  // what `code` ends with; empty: any or none
  Speaker speaker;
  ErrorReason reason;
};

// The first rule that applies decides; the last one applies to everything.
absl::Span<const UpstreamErrorRule> UpstreamErrorRules();

ErrorReason UpstreamReason(Route route, int status, const ErrorBody& body);

// What a message may say of where an answer came from, and what it must not repeat.
struct UpstreamPlace {
  Route route = Route::kGet;
  std::string_view host = {};        // "h:8080"
  std::string_view sandbox_id = {};  // or the snapshot's; empty: none
  std::vector<std::string_view> secrets = {};
};

// Metadata: upstream_status, upstream_code, upstream_request_id, sandbox_id, hop, host, feature as
// errors.proto says; RetryInfo from Retry-After.
absl::Status UpstreamError(const UpstreamPlace& place, const HttpResponse& response);

// The server answered with success and something that is not what it should be.
absl::Status UnreadableAnswer(const UpstreamPlace& place, const HttpResponse& response,
                              std::string_view problem);

// A failure of the transport on the way to the server, with the route in its message.
absl::Status TransportError(const UpstreamPlace& place, const absl::Status& failure);

// X-Request-ID of an answer, for metadata: one line of at most 100 bytes, or empty.
std::string RequestIdOf(const HttpHeaders& headers);

// Retry-After of an answer, measured on the server's own clock.
std::optional<absl::Duration> RetryAfter(const HttpHeaders& headers);

}  // namespace bridge
