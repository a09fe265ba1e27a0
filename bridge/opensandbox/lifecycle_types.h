// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/lifecycle_types.h — what the lifecycle server knows and is asked for, as plain
// values. Field by field what the wire has; what is absent there is empty or nullopt here. Any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bridge/net/http_headers.h"

namespace bridge {

// kUnknown: a word that this build does not know ("Allocated" among them); never taken for
// kRunning.
enum class SandboxState {
  kUnknown,
  kPending,
  kRunning,
  kPausing,
  kPaused,
  kResuming,
  kStopping,
  kTerminated,
  kFailed,
};

// "Running" → kRunning, in any case.
SandboxState ParseSandboxState(std::string_view text);
// kRunning → "Running"; "" for kUnknown.
std::string_view SandboxStateText(SandboxState state);
// The main process is over; nothing but deletion follows.
bool IsFinal(SandboxState state);

struct SandboxRecord {
  std::string id = {};
  SandboxState state = SandboxState::kUnknown;
  std::string state_text = {};  // as the server wrote it
  std::string state_reason = {};
  std::string state_message = {};
  std::string image = {};
  std::string snapshot_id = {};
  std::vector<std::string> entrypoint = {};
  std::map<std::string, std::string> metadata = {};  // the bridge's own labels included
  std::string platform = {};                         // "linux/amd64"
  std::optional<absl::Time> created_at = {};
  std::optional<absl::Time> expires_at = {};
};

// Which sandbox of its id a record is: made from created_at, so take it from a read, never from the
// answer of a create (the two differ by milliseconds). "0" when the server gives no such time.
std::string IncarnationOf(const SandboxRecord& record);

// `page` counts from 1. Counts of what the server did not say are -1.
struct Pagination {
  int page = 0;
  int page_size = 0;
  int64_t total_items = -1;
  bool has_next = false;
};

struct SandboxPage {
  std::vector<SandboxRecord> items = {};
  Pagination pagination = {};
};

struct ListQuery {
  std::map<std::string, std::string> metadata = {};
  std::vector<std::string> states = {};
  int page = 1;
  int page_size = 50;
};

// --- Create

enum class PolicyAction { kUnset, kAllow, kDeny };

struct NetworkRule {
  PolicyAction action = PolicyAction::kDeny;
  std::string target = {};
};

struct NetworkPolicy {
  PolicyAction default_action = PolicyAction::kUnset;
  std::vector<NetworkRule> rules = {};
};

struct NetworkPolicyStatus {
  NetworkPolicy policy = {};
  std::string enforcement = {};  // "dns", "dns+nft"
};

struct VolumeSpec {
  std::string name = {};
  std::string mount_path = {};
  bool read_only = false;
  std::string sub_path = {};
  std::string host_path = {};  // either this
  std::string claim = {};      // or a named volume
  bool create_if_missing = true;
  bool delete_with_sandbox = false;
  std::string storage_class = {};
  std::string size = {};
  std::vector<std::string> access_modes = {};
};

struct CreateSpec {
  // Exactly one of the three.
  std::string image = {};
  std::string snapshot_id = {};
  std::string template_id = {};

  std::string image_user = {};
  std::string image_password = {};  // secret
  std::vector<std::string> entrypoint = {};
  std::vector<std::pair<std::string, std::string>> env = {};  // values may be secret
  std::map<std::string, std::string> metadata = {};
  std::optional<absl::Duration> ttl = {};  // nullopt: never expires
  std::map<std::string, std::string> resource_limits = {};
  std::map<std::string, std::string> resource_requests = {};
  std::string platform = {};  // "linux/amd64" or empty
  std::optional<NetworkPolicy> network_policy = {};
  bool secure_access = false;
  std::vector<VolumeSpec> volumes = {};
  std::map<std::string, std::string> extensions = {};
};

// --- Endpoints, snapshots, usage

// What `endpoints/{port}` answers: mostly without a scheme.
struct RawEndpoint {
  std::string endpoint = {};
  HttpHeaders headers = {};
};

enum class SnapshotState { kUnknown, kCreating, kReady, kFailed, kDeleting };
SnapshotState ParseSnapshotState(std::string_view text);

struct SnapshotRecord {
  std::string id = {};
  std::string sandbox_id = {};
  std::string name = {};
  SnapshotState state = SnapshotState::kUnknown;
  std::string state_text = {};
  std::string state_message = {};
  std::optional<absl::Time> created_at = {};
};

struct SnapshotPage {
  std::vector<SnapshotRecord> items = {};
  Pagination pagination = {};
};

// As execd's /metrics has it; on stock daemons the numbers of the machine, not of the sandbox.
struct ResourceSample {
  double cpu_count = 0;
  double cpu_used_percent = 0;
  int64_t memory_total_bytes = 0;
  int64_t memory_used_bytes = 0;
  std::optional<absl::Time> at = {};
};

}  // namespace bridge
