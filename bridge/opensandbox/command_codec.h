// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/command_codec.h — execd's command events and status records: JSON ↔ values.
// Sources: the event stream of POST /command (bare JSON objects; which keys an event has depends on
// its type, absent means empty) and GET /command/status/{id}. The events are the hot path of a
// chatty command, so they are read by simdjson; nothing here throws. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

struct CommandEvent {
  enum class Type {
    kInit,    // text = the command's id
    kStdout,  // text = one line without its end, or "\n" for an empty line
    kStderr,
    kPing,
    kComplete,  // ended with status 0 (foreground) or was started (background)
    kError,     // ended otherwise: error_value, error_trace
    kFailure,   // the daemon failed in mid-stream: code, text
    kOther,     // a type that this build does not know: to be ignored
  };
  Type type = Type::kOther;
  std::string text = {};
  std::string error_value = {};  // error.evalue
  std::string error_trace = {};  // error.traceback[0]
  std::string code = {};         // kFailure
};

// Errors: UPSTREAM_PROTOCOL (not a JSON object). Reuses the memory of `event`.
absl::Status ParseCommandEvent(std::string_view json, CommandEvent* event);

// How a foreground command ended, from its terminal kError event. "3" → ExitCode{3}; "-1" with
// "signal: killed" → Signalled{9}; text → SpawnFailed.
Outcome OutcomeOfError(std::string_view error_value, std::string_view error_trace);

// "signal: segmentation fault (core dumped)" → Signalled{11, true}.
std::optional<Signalled> ParseSignalText(std::string_view text);

struct CommandStatus {
  bool running = false;
  std::optional<int> exit_code = {};
  std::string error = {};  // "exit status 3", "signal: killed"
  absl::Time started_at = absl::InfinitePast();
  absl::Time finished_at = absl::InfinitePast();
};

absl::StatusOr<CommandStatus> ParseCommandStatus(std::string_view json);

// Of a status record that is not running. Lost when the record holds no exit code.
Outcome OutcomeOfStatus(const CommandStatus& status);

// The body of POST /command. `timeout` infinite: none.
struct CommandRequest {
  std::string command = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::optional<uint32_t> uid = {};
  std::optional<uint32_t> gid = {};
  absl::Duration timeout = absl::InfiniteDuration();
};
std::string CommandRequestJson(const CommandRequest& request);

}  // namespace bridge
