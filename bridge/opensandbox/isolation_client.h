// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/isolation_client.h — isolated sessions of sandboxes, where the daemon has them.
// One object per event loop; loop thread only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/exec.h"
#include "bridge/opensandbox/isolation_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// Common errors: those of FindSandbox and of a request to the daemon; UNSUPPORTED_FEATURE
// ("isolation") where the daemon cannot.
class IsolationClient {
 public:
  struct RunSpec {
    std::string script = {};
    std::vector<std::pair<std::string, std::string>> env = {};
    absl::Duration timeout = absl::InfiniteDuration();
  };

  // Both outlive this; `background` takes the tasks that outlive a call.
  IsolationClient(DaemonClient& client, TaskScope& background)
      : client_(client), background_(background) {}

  // "Cannot" is an answer.
  Task<absl::StatusOr<IsolationInfo>> Get(CallContext context, SandboxTarget target);

  // A session in which a first script has run. One that a cancelled or failed call has made is
  // closed again. Errors: PATH_NOT_FOUND, PERMISSION_DENIED (the user may not enter the workspace),
  // UPSTREAM_REJECTED (the daemon's settings do not allow a bind).
  Task<absl::StatusOr<IsolatedSession>> Open(CallContext context, SandboxTarget target,
                                             IsolatedSessionSpec spec);

  // The active ones; `workspace_source` not empty: only those of it. Then UNSUPPORTED_FEATURE
  // ("isolation.workspaces") when a session does not tell its own.
  Task<absl::StatusOr<std::vector<IsolatedSession>>> List(CallContext context, SandboxTarget target,
                                                          std::string workspace_source);

  // A script that runs when this returns. Errors: PROCESS_NOT_FOUND, CANCELLED.
  Task<absl::StatusOr<std::unique_ptr<Exec>>> Run(CallContext context, SandboxTarget target,
                                                  std::string session_id, RunSpec spec);

  // False: there was none.
  Task<absl::StatusOr<bool>> Close(CallContext context, SandboxTarget target,
                                   std::string session_id);

 private:
  Task<absl::Status> CheckPlaces(SandboxHandle sandbox, const IsolatedSessionSpec& spec);
  Task<absl::Status> FillGroup(SandboxHandle sandbox, IsolatedSessionSpec* spec);
  Task<absl::StatusOr<IsolatedSession>> Post(SandboxHandle sandbox, std::string body);

  DaemonClient& client_;
  TaskScope& background_;
};

}  // namespace bridge
