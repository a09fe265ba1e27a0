// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_client.h — long-lived processes of sandboxes: started, found, listed,
// signalled, ended. Everything about a process is in its sandbox, so that any replica finds it by
// its id. One object per event loop; loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/exec_client.h"
#include "bridge/opensandbox/process_attachment.h"
#include "bridge/opensandbox/process_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class ProcessClient {
 public:
  // All outlive this.
  ProcessClient(DaemonClient& client, TaskScope& background, ExecClient& execs)
      : client_(client), background_(background), execs_(execs) {}

  struct Started {
    std::string process_id = {};
    std::string incarnation = {};
    int64_t pid = 0;  // 0: unknown
  };
  // It runs when this returns, unless `on_attach`.
  // Errors: UNSUPPORTED_FEATURE (no bash, nothing writable), UNKNOWN_USER.
  Task<absl::StatusOr<Started>> Start(CallContext context, SandboxTarget target, ProcessSpec spec,
                                      bool on_attach);

  Task<absl::StatusOr<std::unique_ptr<ProcessAttachment>>> Attach(CallContext context,
                                                                  SandboxTarget target,
                                                                  std::string process_id,
                                                                  AttachOptions options);

  Task<absl::StatusOr<ProcessInfo>> Get(CallContext context, SandboxTarget target,
                                        std::string process_id);
  // The bridge's own, or every process of the sandbox.
  Task<absl::StatusOr<std::vector<ProcessInfo>>> List(CallContext context, SandboxTarget target,
                                                      bool all);

  // PROCESS_NOT_FOUND when it does not run; of a pid also PERMISSION_DENIED (process_table.h).
  Task<absl::Status> Signal(CallContext context, SandboxTarget target, std::string process_id,
                            ProcessSignal signal);
  Task<absl::Status> SignalPid(CallContext context, SandboxTarget target, int64_t pid,
                               ProcessSignal signal);

  // False: there was none.
  Task<absl::StatusOr<bool>> Delete(CallContext context, SandboxTarget target,
                                    std::string process_id);

 private:
  Task<absl::StatusOr<SandboxHandle>> Find(CallContext context, SandboxTarget target);

  DaemonClient& client_;
  TaskScope& background_;
  ExecClient& execs_;
};

}  // namespace bridge
