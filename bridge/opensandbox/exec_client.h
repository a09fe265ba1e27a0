// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_client.h — commands in sandboxes: chooses how each is run and finds it again.
// One object per event loop; loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/exec.h"
#include "bridge/opensandbox/exec_id.h"
#include "bridge/opensandbox/exec_script.h"
#include "bridge/opensandbox/sandbox_handle.h"
#include "bridge/opensandbox/user_directory.h"

namespace bridge {

struct ExecSignalResult {
  bool delivery_confirmed = false;
  bool ended = false;
};

struct ExecInfo {
  bool running = false;
  std::optional<Outcome> outcome = {};
  absl::Time started_at = absl::InfinitePast();
  absl::Time finished_at = absl::InfinitePast();
  std::optional<int64_t> stdout_bytes = {};
  std::optional<int64_t> stderr_bytes = {};
  std::optional<bool> still_open = {};  // as in ExecBatch
  ExecFidelity fidelity = ExecFidelity::kBytes;
};

class ExecClient {
 public:
  // Both outlive this; `background` takes the tasks that outlive a call.
  ExecClient(DaemonClient& client, TaskScope& background)
      : client_(client), background_(background) {}

  // Starts a command; it is running when this returns, or its first batch says that it could not be
  // started. `heartbeat`: about how long Next() may wait at most.
  // Errors: those of Resolve and of the daemon; UNSUPPORTED_FEATURE (exact output or input that
  // cannot be had here), UNKNOWN_USER, CANCELLED. A command that was sent when the task was
  // cancelled is killed, or left running, by its policy.
  Task<absl::StatusOr<std::unique_ptr<Exec>>> Start(CallContext context, SandboxTarget target,
                                                    ExecSpec spec, absl::Duration heartbeat);

  // An exec that runs or ran, from these bytes of its outputs on.
  // Errors: PROCESS_NOT_FOUND, REPLAY_GAP, UNSUPPORTED_FEATURE (nothing is kept), INVALID_ARGUMENT.
  Task<absl::StatusOr<std::unique_ptr<Exec>>> Attach(CallContext context, SandboxTarget target,
                                                     std::string exec_id, int64_t stdout_offset,
                                                     int64_t stderr_offset, bool kill_on_drop,
                                                     absl::Duration heartbeat);

  // Errors: PROCESS_NOT_FOUND (also when it has ended), UNSUPPORTED_FEATURE.
  Task<absl::StatusOr<ExecSignalResult>> Signal(CallContext context, SandboxTarget target,
                                                std::string exec_id, int signal);

  Task<absl::StatusOr<ExecInfo>> Get(CallContext context, SandboxTarget target,
                                     std::string exec_id);

 private:
  Task<absl::StatusOr<std::unique_ptr<Exec>>> StartOn(SandboxHandle sandbox, ExecSpec spec,
                                                      absl::Duration heartbeat);
  Task<absl::StatusOr<std::unique_ptr<Exec>>> StartStock(SandboxHandle sandbox, ExecSpec spec);
  // `prepared` outlives the task.
  Task<absl::Status> MakeFolder(SandboxHandle sandbox, std::string path, ExecPrepared* prepared);
  Task<absl::Status> UploadStdin(SandboxHandle sandbox, std::string path, std::string bytes);
  Task<absl::StatusOr<ExecSignalResult>> SignalStock(SandboxHandle sandbox, ExecId id, int signal);
  Task<absl::StatusOr<ExecSignalResult>> SignalOwn(SandboxHandle sandbox, ExecId id, int signal);
  Task<absl::StatusOr<ExecInfo>> GetStock(SandboxHandle sandbox, ExecId id);
  Task<absl::StatusOr<ExecInfo>> GetOwn(SandboxHandle sandbox, ExecId id);

  DaemonClient& client_;
  TaskScope& background_;
};

}  // namespace bridge
