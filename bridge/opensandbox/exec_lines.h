// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_lines.h — the lossy way: the daemon's own event stream. The cheapest for
// thousands of idle streams and all that is left on a read-only file system. Line ends come as
// "\n", bytes that are not UTF-8 as U+FFFD, and whether the last line ended is not known. If the
// stream breaks what was not seen is gone.
#pragma once

#include <memory>
#include <vector>

#include "bridge/opensandbox/exec.h"
#include "bridge/opensandbox/exec_id.h"
#include "bridge/opensandbox/remote_command.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class LineExec final : public Exec {
 public:
  // `command` has its id.
  LineExec(SandboxHandle sandbox, std::unique_ptr<RemoteCommand> command, ExecId id,
           bool kill_on_drop);
  ~LineExec() override;

  Task<absl::Status> Next(ExecBatch* batch, absl::Duration patience) override;
  void Skip(StreamId) override {}  // the lines come anyway; the caller drops them

 private:
  void TakeEvents(ExecBatch* batch);
  Task<Outcome> OutcomeOfBrokenStream();

  SandboxHandle sandbox_;
  std::unique_ptr<RemoteCommand> command_;
  const ExecId exec_id_;
  const bool kill_on_drop_;
  std::vector<CommandEvent> events_;
  int64_t produced_[2] = {0, 0};
  bool reported_ = false;
  bool over_ = false;  // nothing of it runs any more, as far as can be known
};

}  // namespace bridge
