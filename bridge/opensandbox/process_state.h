// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_state.h — what is known of a process: whether it runs, how it ended, how far
// its output is. Two things tell it, the daemon (bytes, markers among them; whether the wrapper
// runs) and the wrapper's files (the program, markers), and neither at the moment of the other.
// Errors: PROCESS_NOT_FOUND, those of a request to the daemon. Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/process_types.h"
#include "bridge/opensandbox/pty_codec.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// GET /pty/{session}.
Task<absl::StatusOr<PtyState>> FetchPtyState(SandboxHandle sandbox, std::string session);

// Whether the program was ever started. One that was killed together with its wrapper before it
// printed anything looks to the daemon like one that never was.
Task<absl::StatusOr<bool>> WasProcessStarted(SandboxHandle sandbox, std::string folder);

// Whether its program was started and the wrapper has not seen it end: it has printed no mark
// since.
Task<absl::StatusOr<bool>> IsProcessRunning(SandboxHandle sandbox, std::string folder);

// How many markers the wrapper says that it has printed, and how the run ended of whose end the
// last one tells; it says so right after having done it.
struct ProcessMarks {
  int count = 0;
  std::optional<Outcome> ended = {};
};
Task<absl::StatusOr<ProcessMarks>> FetchProcessMarks(SandboxHandle sandbox, std::string folder);

// What the wrapper's files say, at one moment.
struct ProcessRecord {
  std::string process_id = {};
  int64_t pid = 0;                              // 0: the program does not run
  ProcessState state = ProcessState::kRunning;  // of the program, if it runs
  bool started = false;                         // ever
  ProcessMarks marks = {};
};
// A line of RecordScript() or ListOwnScript(). Pure.
std::optional<ProcessRecord> ParseProcessRecord(std::string_view line);
Task<absl::StatusOr<ProcessRecord>> FetchProcessRecord(SandboxHandle sandbox, std::string folder);

// The kernel's letter for a process's state. Pure.
ProcessState StateOfLetter(std::string_view letter);

// Fills in pid, state and outcome. `daemon` is asked for nothing when the program runs. Pure.
void DescribeProcess(const ProcessRecord& record, const PtyState& daemon, ProcessInfo* info);

// How one ended that is over without its wrapper having told its end.
Outcome LostWithItsWrapper();

}  // namespace bridge
