// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_own.h — exec on our own daemon: one framed stream with exact outputs and the
// true wait status (docs/execd-extras.md). The daemon kills the group when the stream is cut,
// unless told to detach; cut streams are resumed at their byte.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bridge/opensandbox/exec.h"
#include "bridge/opensandbox/exec_frames.h"
#include "bridge/opensandbox/exec_id.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class OwnExec final : public Exec {
 public:
  // POST /v1/exec. Await Begin() before anything else.
  OwnExec(SandboxHandle sandbox, const ExecSpec& spec, absl::Duration heartbeat);
  // GET /v1/exec/{id}/output.
  OwnExec(SandboxHandle sandbox, ExecId id, int64_t stdout_offset, int64_t stderr_offset,
          bool kill_on_drop, absl::Duration heartbeat);
  ~OwnExec() override;

  // Waits until it runs. spawn_failed() tells of a program that could not be started, which is not
  // an error. Errors: those of ParseExecRefusal and of the transport.
  Task<absl::Status> Begin();

  Task<absl::Status> Next(ExecBatch* batch, absl::Duration patience) override;
  void Skip(StreamId stream) override;

 private:
  static Task<void> Kill(SandboxHandle sandbox, std::string target);
  Task<absl::Status> BeginOnce();
  Task<absl::Status> Open();
  Task<absl::Status> ReadMore();
  absl::Status TakeFrames(ExecBatch* batch);
  absl::Status TakeFrame(const ExecFrame& frame, ExecBatch* batch);
  Task<absl::Status> Forgive(absl::Status why);
  HttpRequest StreamRequest(std::string_view method, std::string target) const;
  void ReportSpawnFailure(ExecBatch* batch);

  SandboxHandle sandbox_;
  const bool kill_on_drop_;
  const absl::Duration heartbeat_;
  std::unique_ptr<Transfer> transfer_;
  ExecFrameParser parser_;
  std::string chunk_;
  std::string command_id_;
  int64_t next_[2] = {0, 0};  // the next byte of each stream
  bool skip_[2] = {false, false};
  std::optional<SpawnFailed> spawn_failed_;
  bool started_ = false;
  bool refused_ = false;  // nothing was started
  bool exited_ = false;
  bool drained_ = false;
  absl::Duration broken_since_ = absl::InfiniteDuration();
  int contradictions_ = 0;  // of the daemon since the last byte of output
};

}  // namespace bridge
