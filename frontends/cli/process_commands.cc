// SPDX-License-Identifier: Apache-2.0
//
// `sbx ps`, `kill` and `logs`.
#include <fmt/format.h>
#include <signal.h>

#include <cctype>
#include <optional>

#include "absl/strings/numbers.h"
#include "bridge/base/signal_names.h"
#include "bridge/base/status_macros.h"
#include "frontends/cli/command.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::ExecEvent;
using sandbox::bridge::v1::ExecService;
using sandbox::bridge::v1::GetDiagnosticsRequest;
using sandbox::bridge::v1::Outcome;
using sandbox::bridge::v1::ProcessInfo;
using sandbox::bridge::v1::ProcessService;
using sandbox::bridge::v1::SandboxService;
using sandbox::bridge::v1::Signal;

// --- ps

std::string StateText(const ProcessInfo& process) {
  switch (process.state()) {
    case ProcessInfo::STATE_RUNNING:
      return "running";
    case ProcessInfo::STATE_PENDING:
      return "pending";
    case ProcessInfo::STATE_EXITED:
      return OutcomeText(process.outcome());
    case ProcessInfo::STATE_STOPPED:
      return "stopped";
    case ProcessInfo::STATE_ZOMBIE:
      return "zombie";
    default:
      return "?";
  }
}

std::string CommandText(const ProcessInfo& process) {
  std::string text;
  for (const std::string& word : process.command_line()) {
    if (!text.empty()) text += ' ';
    text += Printable(word);
  }
  return text;
}

std::string NumberOr(int64_t number, std::string_view otherwise) {
  return number != 0 ? std::to_string(number) : std::string(otherwise);
}

int RunPs(Context& context, const Arguments& arguments) {
  sandbox::bridge::v1::ListProcessesRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  request.set_all(arguments.Has("--all"));
  sandbox::bridge::v1::ListProcessesResponse response;
  const grpc::Status status = Call(context, context.bridge.processes(),
                                   &ProcessService::Stub::ListProcesses, request, &response);
  if (!status.ok()) return FailCall(context, status);
  std::vector<std::vector<std::string>> rows = {
      {"PID", "PPID", "USER", "PROCESS", "STATE", "COMMAND"}};
  for (const ProcessInfo& process : response.processes()) {
    rows.push_back({NumberOr(process.pid(), "?"), NumberOr(process.parent_pid(), "?"),
                    Printable(process.user()),
                    process.process_id().empty() ? "-" : Printable(process.process_id()),
                    StateText(process), CommandText(process)});
  }
  return Print(context, ToJson(response), Table(rows));
}

// --- kill

absl::StatusOr<Signal> ParseSignal(const std::string& text) {
  Signal signal;
  int number = 0;
  if (absl::SimpleAtoi(text, &number)) {
    if (number < 1 || number > kMaxSignal) {
      return absl::InvalidArgumentError(fmt::format("there is no signal {}", number));
    }
    signal.set_number(number);
    return signal;
  }
  std::string name;
  for (const char c : text) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (!SignalNumber(name)) {
    return absl::InvalidArgumentError(fmt::format("there is no signal \"{}\"", text));
  }
  signal.set_name(name);
  return signal;
}

int PrintDelivery(Context& context, const Json& json, bool delivered, bool ended) {
  return Print(context, json,
               ended       ? "it is gone\n"
               : delivered ? "delivered\n"
                           : "sent; whether it was delivered is not known\n");
}

int KillExec(Context& context, const Arguments& arguments, const Signal& signal) {
  sandbox::bridge::v1::SignalExecRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  request.set_exec_id(arguments.words()[1]);
  *request.mutable_signal() = signal;
  sandbox::bridge::v1::SignalExecResponse response;
  const grpc::Status status =
      Call(context, context.bridge.exec(), &ExecService::Stub::SignalExec, request, &response);
  if (!status.ok()) return FailCall(context, status);
  return PrintDelivery(context, ToJson(response), response.delivery_confirmed(), response.ended());
}

int RunKill(Context& context, const Arguments& arguments) {
  const auto signal = ParseSignal(arguments.Value("--signal", "TERM"));
  if (!signal.ok()) return FailUsage(context, "kill", signal.status());
  if (arguments.Has("--exec")) return KillExec(context, arguments, *signal);
  sandbox::bridge::v1::SignalProcessRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  const std::string& target = arguments.words()[1];
  int64_t pid = 0;
  if (!absl::SimpleAtoi(target, &pid)) {
    request.set_process_id(target);
  } else if (pid > 1) {
    request.set_pid(pid);
  } else {
    return FailUsage(context, "kill",
                     absl::InvalidArgumentError(fmt::format("pid {} cannot be signalled", pid)));
  }
  *request.mutable_signal() = *signal;
  request.set_group(arguments.Has("--group"));
  sandbox::bridge::v1::SignalProcessResponse response;
  const grpc::Status status = Call(context, context.bridge.processes(),
                                   &ProcessService::Stub::SignalProcess, request, &response);
  if (!status.ok()) return FailCall(context, status);
  return PrintDelivery(context, ToJson(response), response.delivery_confirmed(), response.ended());
}

// --- logs

int PrintDiagnostics(Context& context, const Arguments& arguments) {
  GetDiagnosticsRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  request.set_kind(arguments.Has("--events")    ? GetDiagnosticsRequest::KIND_EVENTS
                   : arguments.Has("--inspect") ? GetDiagnosticsRequest::KIND_INSPECT
                   : arguments.Has("--summary") ? GetDiagnosticsRequest::KIND_SUMMARY
                                                : GetDiagnosticsRequest::KIND_LOGS);
  int tail = 0;
  if (arguments.Has("--tail") &&
      (!absl::SimpleAtoi(arguments.Value("--tail"), &tail) || tail < 1 || tail > 10000)) {
    return FailUsage(context, "logs", absl::InvalidArgumentError("--tail is 1 to 10000 lines"));
  }
  request.set_tail(tail);
  sandbox::bridge::v1::GetDiagnosticsResponse response;
  const grpc::Status status = Call(context, context.bridge.sandboxes(),
                                   &SandboxService::Stub::GetDiagnostics, request, &response);
  if (!status.ok()) return FailCall(context, status);
  if (!context.json && response.truncated()) {
    context.streams.Note("only the newest part is shown; there was more than 1 MiB");
  }
  if (!context.json && response.redacted()) {
    context.streams.Note("values that look like secrets were replaced");
  }
  return Print(context, ToJson(response), response.text());
}

absl::Status PrintEvent(Context& context, const ExecEvent& event) {
  if (context.json) {
    return event.has_keepalive() ? absl::OkStatus() : context.streams.Out(JsonLine(ToJson(event)));
  }
  for (const ExecEvent::Output& output : event.output_batch().outputs()) {
    const bool is_stderr = output.stream() == sandbox::bridge::v1::OUTPUT_STREAM_STDERR;
    RETURN_IF_ERROR(is_stderr ? context.streams.Err(output.data())
                              : context.streams.Out(output.data()));
  }
  if (event.drained().stdout_truncated() || event.drained().stderr_truncated()) {
    context.streams.Note("output was cut: the command has printed more than is kept of it");
  }
  if (event.drained().lossy()) context.streams.Note("the output may differ from what was printed");
  if (event.drained().still_open()) context.streams.Note(kStillOpenNote);
  return absl::OkStatus();
}

// How a followed command ended.
int ConcludeFollowed(Context& context, const std::optional<Outcome>& outcome) {
  if (!outcome) {
    return Fail(context,
                {.reason = "UPSTREAM_PROTOCOL",
                 .message = "the stream ended without an outcome",
                 .advice = "A defect of the bridge; please report it with the bridge's log."},
                kExitNoVerdict);
  }
  if (!outcome->has_exit_code() && !context.json) {
    context.streams.Note(fmt::format("the command {}", OutcomeText(*outcome)));
  }
  return OutcomeExitCode(*outcome);
}

// What a detached exec has printed and prints; the command itself is left alone.
int FollowExec(Context& context, const Arguments& arguments) {
  sandbox::bridge::v1::AttachExecRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  request.set_exec_id(arguments.words()[1]);
  const auto call = context.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(context.interrupts, [&](int) {
    call->TryCancel();
    context.streams.Abandon();
  });
  const auto reader = context.bridge.exec().AttachExec(call.get(), request);
  ExecEvent event;
  std::optional<Outcome> outcome;
  absl::Status printed;
  while (reader->Read(&event)) {
    if (event.has_exited()) outcome = event.exited().outcome();
    if (!printed.ok()) continue;
    printed = PrintEvent(context, event);
    if (!printed.ok()) call->TryCancel();
  }
  const grpc::Status status = reader->Finish();
  if (context.interrupts.first() != 0) return kExitSignalBase + context.interrupts.first();
  if (absl::IsAborted(printed)) return kExitSignalBase + SIGPIPE;
  if (!printed.ok()) {
    return Fail(context, LocalFailure(printed, "The command runs on; mend stdout and repeat."),
                kExitNoVerdict);
  }
  if (!status.ok()) return FailCall(context, status, kExitNoVerdict);
  return ConcludeFollowed(context, outcome);
}

// Options that would not be looked at.
absl::Status CheckLogsOptions(const Arguments& arguments) {
  const int kinds =
      arguments.Has("--events") + arguments.Has("--inspect") + arguments.Has("--summary");
  if (kinds > 1) {
    return absl::InvalidArgumentError("give one of --events, --inspect and --summary");
  }
  if (arguments.words().size() == 2 && (kinds > 0 || arguments.Has("--tail"))) {
    return absl::InvalidArgumentError(
        "--events, --inspect, --summary and --tail are of a sandbox, not of one exec");
  }
  return absl::OkStatus();
}

int RunLogs(Context& context, const Arguments& arguments) {
  const absl::Status options = CheckLogsOptions(arguments);
  if (!options.ok()) return FailUsage(context, "logs", options);
  return arguments.words().size() == 2 ? FollowExec(context, arguments)
                                       : PrintDiagnostics(context, arguments);
}

}  // namespace

std::vector<Command> ProcessCommands() {
  using K = Option::Kind;
  return {
      {"ps", "[OPTIONS] ID", "List processes of a sandbox",
       "Those that the bridge started and that live on: terminals and background processes.\n",
       CommandLine{.options = {{"--all", 'a', K::kFlag, "", "Every process of the sandbox."}},
                   .min_words = 1,
                   .max_words = 1},
       RunPs},
      {"kill", "[OPTIONS] ID TARGET", "Send a signal to a process of a sandbox",
       "TARGET is a pid or a process id, as `sbx ps` shows them, or with --exec an exec id.\n",
       CommandLine{
           .options = {{"--signal", 's', K::kValue, "SIGNAL", "Number or name. Default: TERM."},
                       {"--group", 'g', K::kFlag, "", "To its whole process group."},
                       {"--exec", 0, K::kFlag, "", "TARGET is an exec id."}},
           .min_words = 2,
           .max_words = 2},
       RunKill},
      {"logs", "[OPTIONS] ID [EXEC]", "Show what a sandbox or a detached command printed",
       "Without EXEC: what the sandbox's main process printed. With the exec id that\n"
       "`sbx exec --detach` gave: all output of that command so far, then what comes; ends with\n"
       "its exit code. Ctrl-C leaves the command running.\n",
       CommandLine{.options = {{"--tail", 0, K::kValue, "N", "The newest N lines. Default: 100."},
                               {"--events", 0, K::kFlag, "", "What happened to the sandbox."},
                               {"--inspect", 0, K::kFlag, "", "How the upstream sees it."},
                               {"--summary", 0, K::kFlag, "", "All of it in short."}},
                   .min_words = 1,
                   .max_words = 2},
       RunLogs},
  };
}

}  // namespace bridge::cli
