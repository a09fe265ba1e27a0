// SPDX-License-Identifier: Apache-2.0
//
// epp/exec_methods.h — exec.start (a stream of notifications) and exec.run (one answer).
//
// The host gives a stream up when nothing comes for `timeout` + 5 s and tells nobody; so the total
// limit is the bridge's, and silent commands without a limit send heartbeats. Whatever happens, a
// stream that was answered ends with exactly one exec.exit that has an integer:
//   the command's own code · 128 + n for a signal · 124 for the timeout · 130 (137) for a cancel ·
//   127 and 126 when it could not be started · 125, with a line on stderr, when its end is not
//   known
// `reason` beside it says which it is, for those who can tell 124 from 124. `lossy` and
// `still_open` are those of ExecEvent.Drained, there when they are true or known; output that is
// missing for certain is a line on stderr, too, because hosts read no other field.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "frontends/epp/call.h"

namespace bridge::epp {

Task<void> StartExec(Call& call);
Task<absl::StatusOr<Json>> RunExec(Call& call);

// The request of either. Pure.
absl::StatusOr<v1::ExecuteRequest> MakeExecuteRequest(const Params& params);

// How an outcome reads in EPP/1.
struct ExitReport {
  int code = 0;
  std::string reason = {};   // "exited", "signal", "timeout", "cancelled", "spawn_failed", "lost"
  std::string signal = {};   // "SIGKILL"
  std::string message = {};  // a line for stderr; empty when the program speaks for itself
  bool lossy = false;
  std::optional<bool> still_open = {};
};
ExitReport ReportOutcome(const v1::Outcome& outcome);
// Of a stream that broke before its outcome.
ExitReport ReportFailure(const absl::Status& failure, bool cancelled);

}  // namespace bridge::epp
