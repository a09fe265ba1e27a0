// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_pauser.h — freezes and thaws sandboxes, and returns when they have settled.
// Loop thread only; the object outlives its tasks.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/directory_group.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/usable_waiter.h"

namespace bridge {

struct Transition {
  SandboxRecord record = {};
  bool settled = false;
  bool already = false;
};

class SandboxPauser {
 public:
  SandboxPauser(LifecycleClient& client, UsableWaiter& usable, DirectoryGroup& directories)
      : client_(client), usable_(usable), directories_(directories) {}
  SandboxPauser(const SandboxPauser&) = delete;
  SandboxPauser& operator=(const SandboxPauser&) = delete;

  // Errors: SANDBOX_NOT_RUNNING (metadata state), SANDBOX_FAILED, those of the client.
  Task<absl::StatusOr<Transition>> Pause(CallContext context, std::string sandbox_id,
                                         std::string incarnation, absl::Duration wait);
  // Settled: it runs and its daemon answers, at an endpoint that was asked for anew.
  Task<absl::StatusOr<Transition>> Resume(CallContext context, std::string sandbox_id,
                                          std::string incarnation, absl::Duration wait);

 private:
  Task<absl::StatusOr<Transition>> AwaitPaused(CallContext context, std::string sandbox_id,
                                               absl::Duration wait);
  Task<absl::StatusOr<Transition>> AwaitUsable(CallContext context, std::string sandbox_id,
                                               absl::Duration wait);

  LifecycleClient& client_;
  UsableWaiter& usable_;
  DirectoryGroup& directories_;
};

}  // namespace bridge
