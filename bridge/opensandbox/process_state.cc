// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_state.h"

#include <sstream>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/process_id.h"
#include "bridge/opensandbox/process_marker.h"
#include "bridge/opensandbox/process_script.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr absl::Duration kSmallLimit = absl::Seconds(10);
constexpr size_t kMaxSmallBody = 64 * 1024;

Task<absl::StatusOr<bool>> IsThere(SandboxHandle sandbox, std::string path) {
  const absl::StatusOr<std::string> text = co_await sandbox.client.ReadSmallFile(
      sandbox.context, sandbox.daemon, std::move(path), kMaxSmallBody);
  if (ReasonOf(text.status()) == ErrorReason::ERROR_REASON_PATH_NOT_FOUND) co_return false;
  if (!text.ok()) co_return text.status();
  co_return true;
}

// "000001 e 003": behind an odd number of marks the program has ended.
ProcessMarks ReadMarks(std::istream& words) {
  ProcessMarks marks;
  std::string letter;
  int value = 0;
  words >> marks.count >> letter >> value;
  const auto kind = ProcessMarkKind(letter);
  if (!words.fail() && kind) marks.ended = OutcomeOfMark({*kind, value});
  return marks;
}

}  // namespace

Task<absl::StatusOr<PtyState>> FetchPtyState(SandboxHandle sandbox, std::string session) {
  HttpRequest request = sandbox.client.Request(sandbox.context, *sandbox.daemon, "GET",
                                               "/pty/" + QueryEscape(session), kSmallLimit);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon,
                                                    std::move(request), kMaxSmallBody));
  if (response.status == 404) co_return UnknownProcess();
  if (response.status != 200) co_return DaemonError(response, "describe a process");
  co_return ParsePtyState(response.body);
}

Task<absl::StatusOr<bool>> WasProcessStarted(SandboxHandle sandbox, std::string folder) {
  return IsThere(std::move(sandbox), folder + "/s");
}

Task<absl::StatusOr<bool>> IsProcessRunning(SandboxHandle sandbox, std::string folder) {
  return IsThere(std::move(sandbox), folder + "/p");
}

Task<absl::StatusOr<ProcessMarks>> FetchProcessMarks(SandboxHandle sandbox, std::string folder) {
  absl::StatusOr<std::string> text = co_await sandbox.client.ReadSmallFile(
      sandbox.context, sandbox.daemon, folder + "/n", kMaxSmallBody);
  if (ReasonOf(text.status()) == ErrorReason::ERROR_REASON_PATH_NOT_FOUND) co_return ProcessMarks();
  if (!text.ok()) co_return text.status();
  std::istringstream words(*text);
  co_return ReadMarks(words);
}

std::optional<ProcessRecord> ParseProcessRecord(std::string_view line) {
  std::istringstream words{std::string(line)};
  ProcessRecord record;
  std::string letter;
  words >> record.process_id >> record.pid >> letter >> record.started;
  if (words.fail() || record.pid < 0) return std::nullopt;
  record.state = StateOfLetter(letter);
  record.marks = ReadMarks(words);
  return record;
}

Task<absl::StatusOr<ProcessRecord>> FetchProcessRecord(SandboxHandle sandbox, std::string folder) {
  std::vector<std::string> lines;
  CO_ASSIGN_OR_RETURN(int code, co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                                                   RecordScript(folder), &lines));
  const auto record = ParseProcessRecord(code == 0 && !lines.empty() ? lines[0] : "");
  if (record) co_return *record;
  co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                      "what the sandbox says of the process cannot be read");
}

ProcessState StateOfLetter(std::string_view letter) {
  if (letter == "Z" || letter == "X") return ProcessState::kZombie;
  if (letter == "T" || letter == "t") return ProcessState::kStopped;
  return ProcessState::kRunning;
}

void DescribeProcess(const ProcessRecord& record, const PtyState& daemon, ProcessInfo* info) {
  info->pid = record.pid;
  if (record.pid > 0) {
    info->state = record.state;
  } else if (record.marks.count % 2 == 1) {
    info->state = ProcessState::kExited;
    info->outcome = record.marks.ended;
  } else if (daemon.running) {
    info->state = ProcessState::kRunning;  // its start, or the news of its end, is on its way
  } else if (!record.started && daemon.output_offset == 0) {
    info->state = ProcessState::kPending;
  } else {
    info->state = ProcessState::kExited;
    info->outcome = LostWithItsWrapper();
  }
}

Outcome LostWithItsWrapper() {
  return Lost{"the process was killed together with what watched it", false};
}

}  // namespace bridge
