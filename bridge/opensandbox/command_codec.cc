// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/command_codec.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/no_room.h"

namespace bridge {
namespace {

using Json = nlohmann::json;
namespace od = simdjson::ondemand;

// What Go prints for a signal (syscall.Signal.String on linux), by number.
constexpr std::string_view kGoTexts[] = {
    "",
    "hangup",
    "interrupt",
    "quit",
    "illegal instruction",
    "trace/breakpoint trap",
    "aborted",
    "bus error",
    "floating point exception",
    "killed",
    "user defined signal 1",
    "segmentation fault",
    "user defined signal 2",
    "broken pipe",
    "alarm clock",
    "terminated",
    "stack fault",
    "child exited",
    "continued",
    "stopped (signal)",
    "stopped",
    "stopped (tty input)",
    "stopped (tty output)",
    "urgent I/O condition",
    "CPU time limit exceeded",
    "file size limit exceeded",
    "virtual timer expired",
    "profiling timer expired",
    "window changed",
    "I/O possible",
    "power failure",
    "bad system call",
};
constexpr int kMaxSignal = 64;
constexpr int kMaxExitCode = 255;  // of Linux

std::optional<int> ParseInt(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "killed" → 9; 0 when it is not known. Real-time signals print as "signal 35".
int SignalOfGoText(std::string_view text) {
  for (size_t i = 1; i < std::size(kGoTexts); ++i) {
    if (kGoTexts[i] == text) return static_cast<int>(i);
  }
  constexpr std::string_view kNumbered = "signal ";
  if (text.substr(0, kNumbered.size()) != kNumbered) return 0;
  const auto number = ParseInt(text.substr(kNumbered.size()));
  return number && *number >= 1 && *number <= kMaxSignal ? *number : 0;
}

absl::Status Malformed(std::string_view what) {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's daemon sent " + std::string(what) + " that cannot be read");
}

CommandEvent::Type TypeOf(std::string_view name) {
  using Type = CommandEvent::Type;
  if (name == "stdout") return Type::kStdout;
  if (name == "stderr") return Type::kStderr;
  if (name == "ping") return Type::kPing;
  if (name == "init") return Type::kInit;
  if (name == "execution_complete") return Type::kComplete;
  if (name == "error") return Type::kError;
  return Type::kOther;
}

// False: a string that cannot be decoded. What is no string at all (null) counts as absent.
bool TakeString(simdjson::simdjson_result<od::value> value, std::string* out) {
  std::string_view text;
  const simdjson::error_code error = value.get_string().get(text);
  if (error == simdjson::SUCCESS) out->assign(text);
  return error == simdjson::SUCCESS || error == simdjson::INCORRECT_TYPE;
}

bool TakeErrorObject(simdjson::simdjson_result<od::value> value, CommandEvent* event) {
  od::object object;
  if (value.get_object().get(object)) return true;
  for (auto field : object) {
    std::string_view key;
    if (field.unescaped_key().get(key)) return false;
    if (key == "evalue") {
      if (!TakeString(field.value(), &event->error_value)) return false;
    } else if (key == "traceback") {
      od::array lines;
      if (field.value().get_array().get(lines)) continue;
      for (auto line : lines) {
        std::string_view text;
        if (event->error_trace.empty() && !line.get_string().get(text)) {
          event->error_trace.assign(text);
        }
      }
    }
  }
  return true;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A Go daemon's words for a fork or exec that failed. They may quote the command: only the cause
// after the last colon is kept.
SpawnFailed SpawnFailureOf(std::string_view text) {
  using Kind = SpawnFailed::Kind;
  if (text.empty()) return {Kind::kOther, "the daemon gave no reason"};
  if (Contains(text, "argument list too long")) {
    return {Kind::kArgumentsTooLong, "argument list too long"};
  }
  if (Contains(text, "executable file not found") ||
      (Contains(text, "exec") && Contains(text, "no such file or directory"))) {
    return {Kind::kNotFound, "no such program"};
  }
  if (Contains(text, "chdir")) return {Kind::kBadCwd, "the working directory cannot be entered"};
  if (Contains(text, "operation not permitted")) {
    return {Kind::kBadUser, "the user or group cannot be assumed"};
  }
  if (SaysNoRoom(text)) return {Kind::kNoRoom, "the sandbox has no room for another process"};
  if (Contains(text, "permission denied")) return {Kind::kNotExecutable, "permission denied"};
  const size_t colon = text.rfind(": ");
  std::string_view cause = colon == std::string_view::npos ? text : text.substr(colon + 2);
  return {Kind::kOther, std::string(cause.substr(0, 200))};
}

Outcome OutcomeOfCode(int code, std::string_view error) {
  if (const auto signalled = ParseSignalText(error)) return *signalled;
  if (code < 0) return Signalled{};
  return ExitCode{code};
}

absl::Time ParseTime(const Json& object, const char* key) {
  absl::Time time = absl::InfinitePast();
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return time;
  std::string ignored;
  const std::string& text = it->get_ref<const std::string&>();
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &ignored)) return absl::InfinitePast();
  return time;
}

}  // namespace

absl::Status ParseCommandEvent(std::string_view json, CommandEvent* event) {
  event->type = CommandEvent::Type::kOther;
  event->text.clear();
  event->error_value.clear();
  event->error_trace.clear();
  event->code.clear();
  // Reused: a parser allocates its index, and the text needs padding behind it. One thread's calls
  // follow each other, and nothing of them outlives this function.
  thread_local od::parser parser;
  thread_local std::string padded;
  padded.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(json);
  od::document document;
  od::object object;
  if (parser.iterate(padded.data(), json.size(), padded.capacity()).get(document) ||
      document.get_object().get(object)) {
    return Malformed("an event");
  }
  std::string type, message;
  bool ok = true;
  for (auto field : object) {
    std::string_view key;
    if (!ok || field.unescaped_key().get(key)) return Malformed("an event");
    if (key == "type") {
      ok = TakeString(field.value(), &type);
    } else if (key == "text") {
      ok = TakeString(field.value(), &event->text);
    } else if (key == "error") {
      ok = TakeErrorObject(field.value(), event);
    } else if (key == "code") {
      ok = TakeString(field.value(), &event->code);
    } else if (key == "message") {
      ok = TakeString(field.value(), &message);
    }
  }
  if (!ok) return Malformed("an event");
  event->type = TypeOf(type);
  if (type.empty() && !event->code.empty()) {
    event->type = CommandEvent::Type::kFailure;
    event->text = std::move(message);
  }
  return absl::OkStatus();
}

std::optional<Signalled> ParseSignalText(std::string_view text) {
  constexpr std::string_view kPrefix = "signal: ";
  constexpr std::string_view kCore = " (core dumped)";
  if (text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  Signalled result;
  if (text.size() > kCore.size() && text.substr(text.size() - kCore.size()) == kCore) {
    result.core = true;
    text.remove_suffix(kCore.size());
  }
  result.number = SignalOfGoText(text);
  return result;
}

Outcome OutcomeOfError(std::string_view error_value, std::string_view error_trace) {
  if (const auto code = ParseInt(error_value)) {
    // Linux exit codes are 0..255; an `error` with 0 or beyond contradicts itself.
    if (*code < 0 || (*code > 0 && *code <= kMaxExitCode)) return OutcomeOfCode(*code, error_trace);
    return Lost{"the daemon reported an impossible exit status", false};
  }
  constexpr std::string_view kExit = "exit status ";
  if (error_value.substr(0, kExit.size()) == kExit) {
    const auto code = ParseInt(error_value.substr(kExit.size()));
    if (code && *code > 0 && *code <= kMaxExitCode) return ExitCode{*code};
  }
  return SpawnFailureOf(error_value);
}

absl::StatusOr<CommandStatus> ParseCommandStatus(std::string_view json) {
  const Json object = ParseJson(json);
  if (!object.is_object()) return Malformed("a command's status");
  const auto running = object.find("running");
  if (running == object.end() || !running->is_boolean()) return Malformed("a command's status");
  CommandStatus status;
  status.running = running->get<bool>();
  if (const auto code = object.find("exit_code");
      code != object.end() && code->is_number_integer()) {
    const bool huge = code->is_number_unsigned() && code->get<uint64_t>() > kMaxExitCode;
    status.exit_code =
        huge ? kMaxExitCode + 1
             : static_cast<int>(std::clamp<int64_t>(code->get<int64_t>(), -1, kMaxExitCode + 1));
  }
  if (const auto error = object.find("error"); error != object.end() && error->is_string()) {
    status.error = error->get<std::string>();
  }
  status.started_at = ParseTime(object, "started_at");
  status.finished_at = ParseTime(object, "finished_at");
  return status;
}

Outcome OutcomeOfStatus(const CommandStatus& status) {
  if (status.running) return Lost{"the command still runs", true};
  if (!status.exit_code) return Lost{"the daemon kept no exit status", false};
  if (*status.exit_code > kMaxExitCode) {
    return Lost{"the daemon reported an impossible exit status", false};
  }
  return OutcomeOfCode(*status.exit_code, status.error);
}

std::string CommandRequestJson(const CommandRequest& request) {
  Json body = {{"command", request.command}};
  if (!request.env.empty()) {
    Json env = Json::object();
    for (const auto& [name, value] : request.env) env[name] = value;
    body["envs"] = std::move(env);
  }
  if (request.uid) body["uid"] = *request.uid;
  if (request.gid) body["gid"] = *request.gid;
  if (request.timeout != absl::InfiniteDuration()) {
    body["timeout"] = std::max<int64_t>(1, absl::ToInt64Milliseconds(request.timeout));
  }
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bridge
