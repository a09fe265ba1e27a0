// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_table.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/error_body.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/process_script.h"
#include "bridge/opensandbox/process_state.h"
#include "bridge/opensandbox/remote_command.h"
#include "bridge/opensandbox/timestamps.h"

namespace bridge {
namespace {

using nlohmann::json;

constexpr absl::Duration kLimit = absl::Seconds(10);
constexpr size_t kMaxAnswer = 64 * 1024;
// In hex, or as JSON of base64 and some numbers.
constexpr size_t kMaxListBytes = size_t{24} << 20;

absl::Status NoSuchProcess() {
  return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "no such process runs");
}

absl::Status NotPermitted() {
  return MakeError(ErrorReason::ERROR_REASON_PERMISSION_DENIED,
                   "the sandbox's user may not signal this process, or it is the sandbox's daemon");
}

absl::Status Malformed() {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the daemon's list of processes cannot be read");
}

// The bytes that hex digits and spaces say, up to what is neither.
void AppendHex(std::string_view line, std::string* bytes) {
  for (size_t at = 0; at < line.size();) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    unsigned char byte = 0;
    const char* from = line.data() + at;
    const char* to = line.data() + std::min(at + 2, line.size());
    const auto [end, error] = std::from_chars(from, to, byte, 16);
    if (error != std::errc() || end != from + 2) return;
    *bytes += static_cast<char>(byte);
    at += 2;
  }
}

std::vector<std::string> Arguments(std::string_view bytes) {
  std::vector<std::string> arguments;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\0');
    arguments.emplace_back(bytes.substr(0, end));
    // A process that has written over its arguments may lack the last NUL.
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  return arguments;
}

// `query`: "?pid=41", or empty for all.
Task<absl::StatusOr<std::vector<ProcessInfo>>> ListOwn(SandboxHandle sandbox, std::string query) {
  HttpRequest request = sandbox.client.Request(sandbox.context, *sandbox.daemon, "GET",
                                               "/v1/processes" + query, kLimit);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon,
                                                    std::move(request), kMaxListBytes));
  if (response.status != 200) co_return DaemonError(response, "list processes");
  co_return ParseOwnProcessList(response.body);
}

Task<absl::StatusOr<std::vector<ProcessInfo>>> ListByScript(SandboxHandle sandbox,
                                                            ExecClient& execs) {
  SandboxTarget target{sandbox.daemon->sandbox_id, sandbox.daemon->incarnation};
  ExecSpec spec{.shell = ListAllScript()};
  CO_ASSIGN_OR_RETURN(
      std::unique_ptr<Exec> exec,
      co_await execs.Start(sandbox.context, std::move(target), std::move(spec), kLimit));
  std::string text;
  ExecBatch batch;
  std::optional<Outcome> outcome;
  while (!batch.drained) {
    CO_RETURN_IF_ERROR(co_await exec->Next(&batch, kLimit));
    if (batch.exited) outcome = batch.exited;
    for (const ExecOutput& output : batch.outputs) {
      if (output.stream == StreamId::kStdout) text += output.data;
    }
    if (text.size() > kMaxListBytes) {
      co_return MakeError(ErrorReason::ERROR_REASON_OUTPUT_TRUNCATED,
                          "the sandbox's processes have more than 8 MiB of arguments");
    }
  }
  if (!outcome || *outcome != Outcome(ExitCode{0}) || batch.lossy) {
    co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                        "the list of the sandbox's processes broke off");
  }
  co_return ParseProcessList(text);
}

Task<absl::Status> SignalOwn(SandboxHandle sandbox, int64_t pid, ProcessSignal signal) {
  const char* key = "pid";
  if (signal.group) {
    CO_ASSIGN_OR_RETURN(std::vector<ProcessInfo> found,
                        co_await ListOwn(sandbox, "?pid=" + std::to_string(pid)));
    if (!found.empty()) pid = found[0].group_id;
    if (pid <= 1) co_return NotPermitted();
    key = "pgid";
  }
  HttpRequest request =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "POST", "/v1/signal", kLimit);
  request.headers.Set("Content-Type", "application/json");
  request.body = json{{key, pid}, {"signal", signal.signal}}.dump();
  request.resend = Resend::kNever;  // what has arrived must not arrive twice
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon,
                                                    std::move(request), kMaxAnswer));
  if (response.status == 200) co_return absl::OkStatus();
  const ErrorBody error = ParseErrorBody("application/json", response.body);
  if (error.code == "NOT_FOUND") co_return NoSuchProcess();
  if (error.code == "PERMISSION_DENIED") co_return NotPermitted();
  co_return DaemonError(response, "signal a process");
}

// False: `entry` is not as docs/execd-extras.md says.
bool ReadEntry(const json& entry, ProcessInfo* info) {
  const auto number = [&entry](const char* name) {
    const auto it = entry.find(name);
    return it != entry.end() && it->is_number_integer() ? it->get<int64_t>() : int64_t{-1};
  };
  const auto text = [&entry](const char* name) {
    const auto it = entry.find(name);
    return it != entry.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  if (!entry.is_object()) return false;
  info->pid = number("pid");
  info->parent_pid = number("ppid");
  info->group_id = number("pgid");
  if (info->pid <= 0 || info->parent_pid < 0 || info->group_id < 0) return false;
  info->state = StateOfLetter(text("state"));
  info->user = text("user");
  if (info->user.empty()) info->user = std::to_string(number("uid"));
  info->started_at = ParseTimestamp(text("started_at")).value_or(absl::InfinitePast());
  const auto arguments = entry.find("cmdline_b64");
  if (arguments == entry.end() || !arguments->is_array()) return false;
  for (const json& argument : *arguments) {
    if (!argument.is_string()) return false;
    if (!absl::Base64Unescape(argument.get<std::string>(), &info->command_line.emplace_back())) {
      return false;
    }
  }
  return true;
}

}  // namespace

Task<absl::StatusOr<std::vector<ProcessInfo>>> ListProcessTable(SandboxHandle sandbox,
                                                                ExecClient& execs) {
  if (sandbox.capabilities->processes) return ListOwn(std::move(sandbox), "");
  return ListByScript(std::move(sandbox), execs);
}

Task<absl::Status> SignalPid(SandboxHandle sandbox, int64_t pid, ProcessSignal signal) {
  if (sandbox.capabilities->signal && sandbox.capabilities->processes) {
    co_return co_await SignalOwn(std::move(sandbox), pid, signal);
  }
  CO_ASSIGN_OR_RETURN(
      int code, co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                                   SignalPidScript(pid, signal.signal, signal.group), nullptr));
  co_return SignalScriptError(code);
}

absl::Status SignalScriptError(int exit_status) {
  if (exit_status == 0) return absl::OkStatus();
  return exit_status == 13 ? NotPermitted() : NoSuchProcess();
}

std::vector<ProcessInfo> ParseProcessList(std::string_view text) {
  std::vector<ProcessInfo> list;
  std::string arguments;
  bool readable = false;
  const auto finish = [&] {
    if (readable) list.back().command_line = Arguments(arguments);
    arguments.clear();
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with('=')) {
      AppendHex(line, &arguments);
      continue;
    }
    finish();
    std::istringstream head{std::string(line.substr(1))};
    ProcessInfo info;
    std::string state;
    head >> info.pid >> info.parent_pid >> info.group_id >> state >> info.user;
    readable = !head.fail() && info.pid > 0;
    if (!readable) continue;
    info.state = StateOfLetter(state);
    list.push_back(std::move(info));
  }
  finish();
  return list;
}

absl::StatusOr<std::vector<ProcessInfo>> ParseOwnProcessList(std::string_view body) {
  const json page = ParseJson(body);
  if (!page.is_object()) return Malformed();
  const auto entries = page.find("processes");
  if (entries == page.end() || !entries->is_array()) return Malformed();
  std::vector<ProcessInfo> list;
  for (const json& entry : *entries) {
    if (!ReadEntry(entry, &list.emplace_back())) return Malformed();
  }
  return list;
}

}  // namespace bridge
