// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/isolated_run.h — one script in an isolated session of a stock daemon, as an Exec.
//
// What shapes it: runs of a session wait for each other inside the daemon, which says nothing
// meanwhile; there are no pings; dropping the exchange, or the daemon's own timeout, interrupts
// the whole session and so ends it. So a script that is cut off is killed from outside by its mark
// (isolation_script.h) while its exchange stays open, and only its end closes the exchange.
// Output comes as lines, stderr among stdout, blank lines swallowed. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bridge/opensandbox/exec.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// A daemon's refusal of a request about isolation: UNSUPPORTED_FEATURE where it has none,
// PROCESS_NOT_FOUND for an unknown session, else as DaemonError().
absl::Status IsolationError(const HttpResponse& response, std::string_view what);

// The exchange of one run: the task of the call and the one that kills share it.
class RunExchange;

class IsolatedRun final : public Exec {
 public:
  // Sends the script. `mark`: RunMark(); `code`: SessionScript() with it.
  IsolatedRun(SandboxHandle sandbox, std::string session_id, std::string mark,
              const std::string& code, absl::Duration timeout);
  // Kills a script that has not ended, in the background.
  ~IsolatedRun() override;

  // Waits until the script runs, which is when the ones before it have ended. Errors: those of
  // IsolationError and of the transport; PROCESS_NOT_FOUND also when the session's shell has ended.
  Task<absl::Status> AwaitStart();

  Task<absl::Status> Next(ExecBatch* batch, absl::Duration patience) override;
  void Skip(StreamId) override {}  // the lines come anyway; the caller drops them

 private:
  Task<absl::Status> NotStarted();
  Task<bool> Alive();
  void TakeLines(ExecBatch* batch);
  Task<Outcome> HowItEnded();

  SandboxHandle sandbox_;
  const std::string session_id_;
  const std::string mark_;
  const absl::Duration timeout_;
  std::shared_ptr<RunExchange> exchange_;
  absl::Duration started_ = {};
  absl::Duration heard_ = {};
  int64_t produced_ = 0;
  bool late_ = false;      // its time was up: it was killed for that
  bool reported_ = false;  // how it ended
};

}  // namespace bridge
