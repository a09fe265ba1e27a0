// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec.h — one command as the call that runs it sees it, whichever way it is run.
//
//   route   where           what
//   own     our own execd   its framed exec: exact, live, with input      exec_own.h
//   files   stock execd     outputs redirected to files that are fetched  exec_files.h
//   lines   stock execd     the daemon's lossy event stream               exec_lines.h
//
// Owned by one task; loop thread only. Dropping an Exec that has not ended acts on its policy: the
// command is killed and its end confirmed by a background task, or it is left running.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

// What happened since the last look. Empty: nothing yet.
struct ExecBatch {
  std::vector<ExecOutput> outputs = {};
  // Once: how it ended.
  std::optional<Outcome> exited = {};
  // With it, where it is known.
  std::optional<absl::Duration> ran_for = {};
  // Once, last: no output will follow.
  bool drained = false;
  int64_t stdout_bytes = 0;  // all that was printed, delivered or not
  int64_t stderr_bytes = 0;
  bool lossy = false;
  // A process that the command left behind could still print, and nobody listens to it any more.
  // Absent: the daemon does not tell.
  std::optional<bool> still_open = {};

  size_t bytes() const {
    size_t sum = 0;
    for (const ExecOutput& output : outputs) sum += output.data.size();
    return sum;
  }
};

// About as much output as one batch carries.
inline constexpr size_t kExecBatchBytes = 256 * 1024;

class Exec {
 public:
  virtual ~Exec() = default;

  const std::string& id() const { return id_; }
  // kBytes or kLines.
  ExecFidelity fidelity() const { return fidelity_; }
  // 0 when unknown.
  int64_t pid() const { return pid_; }
  const std::string& incarnation() const { return incarnation_; }

  // Waits for something to report, at most about `patience`, and fills *batch (possibly with
  // nothing). Order over all batches: outputs*, exited, outputs*, drained; not to be called after
  // `drained`. Errors: the bridge or the daemon failed in a way that is no outcome; CANCELLED.
  virtual Task<absl::Status> Next(ExecBatch* batch, absl::Duration patience) = 0;

  // What this stream prints from now on is counted and not delivered.
  virtual void Skip(StreamId stream) = 0;

 protected:
  std::string id_;
  ExecFidelity fidelity_ = ExecFidelity::kBytes;
  int64_t pid_ = 0;
  std::string incarnation_;
};

}  // namespace bridge
