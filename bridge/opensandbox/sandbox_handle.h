// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_handle.h — a sandbox as a call works with it: its daemon, what the daemon can
// do, and in whose name. A value; what it refers to outlives it and the background tasks that copy
// it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/capabilities.h"
#include "bridge/opensandbox/daemon_client.h"

namespace bridge {

// Which sandbox a call means.
struct SandboxTarget {
  std::string sandbox_id = {};
  std::string incarnation = {};  // empty: any
};

struct SandboxHandle {
  DaemonClient& client;
  TaskScope& background;  // for what outlives the call
  CallContext context;
  std::shared_ptr<Daemon> daemon;
  std::shared_ptr<DaemonCapabilities> capabilities;

  EventLoop& loop() const { return client.loop(); }
  // The same with a deadline of its own: for what outlives the call.
  SandboxHandle ForBackground(absl::Duration limit) const {
    SandboxHandle copy = *this;
    copy.context.deadline = client.loop().Now() + limit;
    return copy;
  }
};

// Resolves a sandbox and knows its daemon. Errors: those of Resolve and of a request to the daemon.
Task<absl::StatusOr<SandboxHandle>> FindSandbox(DaemonClient& client, TaskScope& background,
                                                CallContext context, SandboxTarget target);

}  // namespace bridge
