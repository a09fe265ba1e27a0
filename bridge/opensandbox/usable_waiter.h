// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/usable_waiter.h — waits until a sandbox can be used: its state is Running and its
// daemon answers where the server says it is. Looks often at first, then every second; each look is
// a read of the record, so that a sandbox that fails is noticed at once and with its reason.
// Loop thread only; the object outlives its tasks.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/daemon_finder.h"
#include "bridge/opensandbox/directory_group.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

class UsableWaiter {
 public:
  UsableWaiter(LifecycleClient& client, DaemonFinder& finder, DirectoryGroup& directories)
      : client_(client), finder_(finder), directories_(directories) {}
  UsableWaiter(const UsableWaiter&) = delete;
  UsableWaiter& operator=(const UsableWaiter&) = delete;

  // Until the loop's time `until`. The record as last read; its daemon is in the directories.
  // Errors: SANDBOX_FAILED (it ended; metadata state), SANDBOX_NOT_FOUND (it is gone),
  // READY_TIMEOUT (metadata last_probe; `timeout` is for the message), CANCELLED, and refusals
  // that no waiting mends: UPSTREAM_UNAUTHENTICATED, UPSTREAM_PERMISSION_DENIED.
  Task<absl::StatusOr<SandboxRecord>> Wait(CallContext context, std::string sandbox_id,
                                           absl::Duration until, absl::Duration timeout);

 private:
  enum class Step { kUsable, kAgain };
  // One look. kAgain: *last_probe says what was seen.
  Task<absl::StatusOr<Step>> Look(CallContext context, const std::string& sandbox_id,
                                  bool may_be_missing, SandboxRecord* record,
                                  std::string* last_probe);

  LifecycleClient& client_;
  DaemonFinder& finder_;
  DirectoryGroup& directories_;
};

}  // namespace bridge
