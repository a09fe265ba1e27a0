// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_files.h — exact bytes from a stock daemon: the command's outputs go to two files
// in a private folder of the sandbox, which are fetched by byte range while it runs and to their
// ends when it has ended. Costs two exchanges more than the lossy way; while it runs, a look every
// 10 ms to 1 s, the longer the quieter it is.
//
// What survives: a broken event stream (the status record says how it ended), a paused sandbox, a
// bridge that dies (another one attaches by the id). A command that has ended is looked at once
// more; what its background children print later is not delivered.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "bridge/opensandbox/exec.h"
#include "bridge/opensandbox/exec_id.h"
#include "bridge/opensandbox/exec_script.h"
#include "bridge/opensandbox/remote_command.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class FileExec final : public Exec {
 public:
  enum class OnDrop { kKill, kDetach };

  // One that was just started. `command` has its id.
  FileExec(SandboxHandle sandbox, std::unique_ptr<RemoteCommand> command, ExecFolder folder,
           ExecId id, OnDrop on_drop, bool stdin_uploaded);
  // One that was started before, perhaps elsewhere, from these bytes on.
  FileExec(SandboxHandle sandbox, ExecFolder folder, ExecId id, OnDrop on_drop,
           int64_t stdout_offset, int64_t stderr_offset);
  ~FileExec() override;

  // Of one that was started before: is what is wanted not ahead of what there is? Await it first.
  Task<absl::Status> CheckPlace();

  Task<absl::Status> Next(ExecBatch* batch, absl::Duration patience) override;
  void Skip(StreamId stream) override;

 private:
  // One output file and how far it was fetched.
  struct Output {
    StreamId stream;
    std::string path;
    int64_t begin = 0;  // the byte from which on it is wanted
    int64_t offset = 0;
    int64_t size = 0;  // as last seen
    int64_t seen = 0;  // the largest size that was
    bool skip = false;
    std::unique_ptr<Transfer> download = {};
    bool head_seen = false;
  };

  Task<absl::Status> Fill(ExecBatch* batch, absl::Duration until);
  Task<absl::Status> FetchTheRest();
  Task<absl::Status> Wait(absl::Duration until);
  Task<void> WatchStream();
  Task<absl::Status> LookAtStatus();
  Task<absl::Status> LookAtSizes();
  Task<absl::Status> Ended(ExecBatch* batch);
  Task<absl::StatusOr<Outcome>> FinalOutcome();
  void StartDownload(Output& output);
  Task<absl::Status> ReadDownload(Output& output, ExecBatch* batch);
  absl::Status TakeSize(Output& output, int64_t size);
  void TakeAbsence();
  int64_t Printed(const Output& output) const;
  absl::Status TakeHead(Output& output, const HttpHead& head);
  Task<absl::Status> Forgive(absl::Status failure);
  bool Downloading() const;
  // Since this was made: it ran at least so long.
  absl::Duration Elapsed() const { return sandbox_.loop().Now() - started_; }

  SandboxHandle sandbox_;
  std::unique_ptr<RemoteCommand> command_;  // null when attached
  const ExecFolder folder_;
  const ExecId exec_id_;
  const OnDrop on_drop_;
  const bool stdin_uploaded_;
  std::array<Output, 2> outputs_;
  const absl::Duration started_;
  absl::Duration interval_;
  absl::Duration next_status_ = absl::ZeroDuration();
  absl::Duration failing_since_ = absl::InfiniteDuration();
  std::optional<Outcome> outcome_;  // known, from whatever source
  std::optional<absl::Duration> ran_for_;
  bool reported_ = false;  // outcome_ was given out
  bool final_ = false;     // the last fetch was begun
  bool looked_ = false;    // the files were there
  bool refused_ = false;   // the attach was wrong, and nothing of the command's is touched
  bool drained_ = false;
  bool lossy_ = false;
};

}  // namespace bridge
