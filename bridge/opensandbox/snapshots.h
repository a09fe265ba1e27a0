// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/snapshots.h — file systems of sandboxes kept as images.
//
// Snapshots have no labels; whose one is is part of its name upstream
// ("name@sandbox-bridge/tenant") where tenants are in use, and taken off again here. Loop thread
// only; the client outlives the task.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

// Returns when the snapshot is ready or has failed, or as it is after `wait`.
// Errors: SANDBOX_NOT_RUNNING, UNSUPPORTED_FEATURE, those of the client.
Task<absl::StatusOr<SnapshotRecord>> CreateSnapshot(LifecycleClient& client, CallContext context,
                                                    std::string sandbox_id, std::string incarnation,
                                                    std::string name, absl::Duration wait);

struct SnapshotListRequest {
  std::string sandbox_id = {};  // empty: of all
  int page_size = 50;
  std::string page_token = {};
};
struct SnapshotList {
  std::vector<SnapshotRecord> snapshots = {};
  std::string next_page_token = {};
};
Task<absl::StatusOr<SnapshotList>> ListSnapshots(LifecycleClient& client, CallContext context,
                                                 SnapshotListRequest request);

// Errors: SNAPSHOT_NOT_FOUND (also for another tenant's), CONFLICT.
Task<absl::Status> DeleteSnapshot(LifecycleClient& client, CallContext context,
                                  std::string snapshot_id);

// May this caller restore it? OK without asking where tenants are not in use.
Task<absl::Status> CheckSnapshot(LifecycleClient& client, CallContext context,
                                 std::string snapshot_id);

}  // namespace bridge
