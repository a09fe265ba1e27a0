// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/process_methods.h"

#include <charconv>
#include <csignal>
#include <limits>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "fmt/format.h"
#include "frontends/epp/convert.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/words.h"

namespace bridge::epp {
namespace {

constexpr int64_t kMaxPid = std::numeric_limits<int32_t>::max();
constexpr size_t kMinIdChars = 8;
constexpr size_t kMaxIdChars = 128;
constexpr std::string_view kPidProblem =
    "must be a process number, or the process_id of a command or terminal";

// Ids of the bridge are words of letters, digits and a few marks, never digits alone.
bool IsBridgeId(std::string_view text) {
  if (text.size() < kMinIdChars || text.size() > kMaxIdChars) return false;
  bool letter = false;
  for (const char c : text) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_other = (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == ':';
    if (!is_letter && !is_other) return false;
    letter = letter || is_letter;
  }
  return letter;
}

std::string_view StateWord(v1::ProcessInfo::State state) {
  switch (state) {
    case v1::ProcessInfo::STATE_PENDING:
      return "pending";
    case v1::ProcessInfo::STATE_EXITED:
      return "exited";
    case v1::ProcessInfo::STATE_STOPPED:
      return "stopped";
    case v1::ProcessInfo::STATE_ZOMBIE:
      return "zombie";
    default:
      return "running";
  }
}

Json ProcessRecord(const v1::ProcessInfo& process) {
  std::vector<std::string> words;
  for (const std::string& word : process.command_line()) words.push_back(ToValidUtf8(word));
  Json record = {{"command", JoinWords(words)}, {"status", StateWord(process.state())}};
  if (process.pid() > 0) {
    record["pid"] = process.pid();
  } else {
    record["pid"] = process.process_id();
  }
  if (!process.process_id().empty()) record["process_id"] = process.process_id();
  if (process.parent_pid() > 0) record["parent_pid"] = process.parent_pid();
  if (!process.user().empty()) record["user"] = process.user();
  return record;
}

Task<absl::Status> SignalByPid(Call& call, std::string sandbox_id, int64_t pid, int signal) {
  v1::SignalProcessRequest request;
  request.set_sandbox_id(std::move(sandbox_id));
  request.set_pid(pid);
  request.mutable_signal()->set_number(signal);
  const absl::StatusOr<v1::SignalProcessResponse> sent = co_await CallUnary(
      call.scope(), call.stubs().processes, &v1::ProcessService::Stub::PrepareAsyncSignalProcess,
      std::move(request), call.environment().call_timeout);
  co_return sent.status();
}

Task<absl::Status> SignalTerminal(Call& call, std::string sandbox_id, std::string process_id,
                                  int signal) {
  v1::SignalProcessRequest request;
  request.set_sandbox_id(std::move(sandbox_id));
  request.set_process_id(std::move(process_id));
  request.mutable_signal()->set_number(signal);
  const absl::StatusOr<v1::SignalProcessResponse> sent = co_await CallUnary(
      call.scope(), call.stubs().processes, &v1::ProcessService::Stub::PrepareAsyncSignalProcess,
      std::move(request), call.environment().call_timeout);
  co_return sent.status();
}

// The id does not tell what it names: a command is the usual case.
Task<absl::Status> SignalById(Call& call, std::string sandbox_id, std::string id, int signal) {
  v1::SignalExecRequest request;
  request.set_sandbox_id(sandbox_id);
  request.set_exec_id(id);
  request.mutable_signal()->set_number(signal);
  const absl::StatusOr<v1::SignalExecResponse> sent = co_await CallUnary(
      call.scope(), call.stubs().execs, &v1::ExecService::Stub::PrepareAsyncSignalExec,
      std::move(request), call.environment().call_timeout);
  if (sent.ok()) co_return absl::OkStatus();
  const ErrorReason reason = ReasonOf(sent.status());
  if (reason != ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND &&
      reason != ErrorReason::ERROR_REASON_INVALID_ARGUMENT) {
    co_return sent.status();
  }
  const absl::Status as_terminal =
      co_await SignalTerminal(call, std::move(sandbox_id), std::move(id), signal);
  co_return as_terminal.ok() ? as_terminal : sent.status();
}

Task<absl::StatusOr<Json>> Signal(Call& call, int signal) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  const Json* value = call.params().Find("pid");
  const absl::StatusOr<ProcessName> name = ProcessNameOf(value == nullptr ? Json() : *value, "pid");
  if (!name.ok()) co_return name.status();
  absl::Status sent;
  if (const int64_t* pid = std::get_if<int64_t>(&*name)) {
    sent = co_await SignalByPid(call, *id, *pid, signal);
  } else {
    sent = co_await SignalById(call, *id, std::get<std::string>(*name), signal);
  }
  if (sent.ok()) co_return Json::object();
  co_return IsUnknownSandbox(sent) ? UnknownSandbox(*id) : sent;
}

}  // namespace

absl::StatusOr<ProcessName> ProcessNameOf(const Json& value, std::string_view field) {
  if (value.is_number_integer()) {
    const auto number = AsInteger(value, field, 1, kMaxPid);
    if (!number.ok()) return InvalidField(field, kPidProblem);
    return ProcessName(*number);
  }
  if (!value.is_string()) return InvalidField(field, kPidProblem);
  const std::string& text = value.get_ref<const std::string&>();
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [ptr, ec] = std::from_chars(text.data(), end, number);
  if (ec == std::errc() && ptr == end && number >= 1 && number <= kMaxPid) {
    return ProcessName(number);
  }
  if (!IsBridgeId(text)) return InvalidField(field, kPidProblem);
  return ProcessName(text);
}

Task<absl::StatusOr<Json>> ListProcesses(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  v1::ListProcessesRequest request;
  request.set_sandbox_id(*id);
  request.set_all(true);
  const absl::StatusOr<v1::ListProcessesResponse> listed = co_await CallUnary(
      call.scope(), call.stubs().processes, &v1::ProcessService::Stub::PrepareAsyncListProcesses,
      std::move(request), call.environment().call_timeout);
  if (!listed.ok()) {
    if (IsUnknownSandbox(listed.status())) co_return UnknownSandbox(*id);
    co_return listed.status();
  }
  Json records = Json::array();
  for (const v1::ProcessInfo& process : listed->processes()) {
    if (process.state() != v1::ProcessInfo::STATE_EXITED) records.push_back(ProcessRecord(process));
  }
  co_return Json{{"processes", std::move(records)}};
}

Task<absl::StatusOr<Json>> SignalProcess(Call& call) {
  const Json* value = call.params().Find("signal");
  const absl::StatusOr<int> signal = SignalOf(value == nullptr ? Json(SIGTERM) : *value, "signal");
  if (!signal.ok()) co_return signal.status();
  co_return co_await Signal(call, *signal);
}

Task<absl::StatusOr<Json>> KillProcess(Call& call) {
  const int signal = SIGKILL;
  co_return co_await Signal(call, signal);
}

Task<absl::StatusOr<Json>> WriteProcessStdin(Call&) {
  const absl::Status refusal = Unsupported(
      "process.stdin", "a running command takes no input; give it with exec.start's stdin");
  co_return refusal;
}

}  // namespace bridge::epp
