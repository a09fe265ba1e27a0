// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/exec_methods.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "bridge/base/signal_names.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/convert.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/exec_output.h"

namespace bridge::epp {
namespace {

using Stream = ServerStream<v1::ExecEvent>;

// Linux takes no longer argument or variable (MAX_ARG_STRLEN, its NUL included).
constexpr size_t kMaxArgumentBytes = 128 * 1024 - 1;
constexpr size_t kMaxStdinBytes = 8 * 1024 * 1024;
constexpr double kMaxTimeoutSeconds = 365.0 * 24 * 3600;
// The host waits 5 s of silence for a command without a limit.
constexpr absl::Duration kHeartbeat = absl::Seconds(1);
// The bridge kills at the timeout and confirms it. If it does not say so in time, we end the stream
// before the host gives it up (5 s), which would tell its user less.
constexpr absl::Duration kTimeoutGrace = absl::Seconds(4);
constexpr int kExitLost = 125;
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;
constexpr int kExitTimeout = 124;
constexpr int kExitCancelled = 130;
// What exec.run's answer may hold, encoded; the rest of the line is for names.
constexpr size_t kMaxRunText = kMaxLineBytes - 4096;

// `cmd` and `args`, or `argv`.
absl::StatusOr<std::vector<std::string>> ArgvOf(const Params& params) {
  std::vector<std::string> argv;
  const char* field = params.Has("argv") ? "argv" : "cmd";
  if (params.Has("argv")) {
    ASSIGN_OR_RETURN(argv, params.TextList("argv"));
  } else {
    ASSIGN_OR_RETURN(std::string cmd, params.Text("cmd"));
    ASSIGN_OR_RETURN(argv, params.TextList("args"));
    argv.insert(argv.begin(), std::move(cmd));
  }
  if (argv.empty() || argv[0].find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidField(field, "names no program");
  }
  for (const std::string& argument : argv) {
    if (argument.size() > kMaxArgumentBytes) {
      return TooLarge("an argument", static_cast<int64_t>(argument.size()), kMaxArgumentBytes,
                      "write it to a file in the sandbox first");
    }
  }
  return argv;
}

absl::Status ReadStdin(const Params& params, std::string* input) {
  if (params.Has("stdin_b64")) {
    ASSIGN_OR_RETURN(const std::string text, params.Text("stdin_b64"));
    if (!absl::Base64Unescape(absl::string_view(text), input)) {
      return InvalidField("stdin_b64", "is not base64");
    }
  } else {
    auto text = params.Text("stdin", "");
    if (!text.ok()) return WithContext(text.status(), "use stdin_b64 for what is not text");
    *input = *std::move(text);
  }
  if (input->size() > kMaxStdinBytes) {
    return TooLarge("stdin", static_cast<int64_t>(input->size()), kMaxStdinBytes,
                    "write it to a file in the sandbox and redirect that");
  }
  return absl::OkStatus();
}

// Absent, not positive and not finite: no limit.
absl::Status ReadTimeout(const Params& params, v1::ExecSpec* spec) {
  ASSIGN_OR_RETURN(const auto seconds, params.Number("timeout"));
  if (!seconds.has_value() || !std::isfinite(*seconds) || *seconds <= 0) return absl::OkStatus();
  const absl::Duration timeout = absl::Seconds(std::min(*seconds, kMaxTimeoutSeconds));
  *spec->mutable_timeout() = ToProto(std::max(timeout, absl::Milliseconds(1)));
  return absl::OkStatus();
}

absl::Duration TimeoutOf(const v1::ExecSpec& spec) {
  if (!spec.has_timeout()) return absl::InfiniteDuration();
  return absl::Seconds(spec.timeout().seconds()) + absl::Nanoseconds(spec.timeout().nanos());
}

// What the stream says before its command runs: the id, or why there is none.
Task<absl::StatusOr<v1::ExecEvent::Started>> AwaitStarted(Stream& stream) {
  v1::ExecEvent event;
  const bool read = co_await stream.Read(&event);
  if (read && event.has_started()) co_return event.started();
  absl::Status failure = co_await stream.Finish();
  if (failure.ok()) {
    failure = MakeError(ErrorReason::ERROR_REASON_INTERNAL, "the bridge sent no start event");
  }
  co_return failure;
}

// Ends a stream whose bridge says nothing after the command's timeout.
class Watchdog {
 public:
  Watchdog(EventLoop& loop, Stream& stream, absl::Duration timeout)
      : stream_(stream), timer_(loop, &Fire, this) {
    if (timeout < absl::InfiniteDuration()) timer_.SetAt(loop.Now() + timeout + kTimeoutGrace);
  }
  bool fired() const { return fired_; }

 private:
  static void Fire(void* self) {
    auto* watchdog = static_cast<Watchdog*>(self);
    watchdog->fired_ = true;
    watchdog->stream_.TryCancel();
  }
  Stream& stream_;
  Timer timer_;
  bool fired_ = false;
};

// How the stream ended, when it did not end by itself.
ExitReport ReportBrokenStream(Call& call, const Watchdog& watchdog, const absl::Status& failure) {
  if (watchdog.fired()) {
    return {.code = kExitTimeout,
            .reason = "timeout",
            .message = "opensandbox: the command timed out, and its end could not be confirmed"};
  }
  return ReportFailure(failure, call.scope().cancelled());
}

// Output is missing until the stream says that it is all there.
ExitReport ReportExited(const v1::ExecEvent::Exited& exited) {
  ExitReport report = ReportOutcome(exited.outcome());
  report.lossy = true;
  return report;
}

void TakeDrained(const v1::ExecEvent::Drained& drained, ExitReport* report) {
  report->lossy = drained.lossy();
  if (drained.has_still_open()) report->still_open = drained.still_open();
}

// Lines are lossy by their nature, and the start has said that it is lines. Of bytes some are gone.
void SayLoss(v1::Fidelity fidelity, ExitReport* report) {
  if (!report->lossy || fidelity == v1::FIDELITY_LINES || !report->message.empty()) return;
  report->message = "opensandbox: some of the command's output was lost";
}

Task<ExitReport> RelayOutput(Call& call, Stream& stream, const Watchdog& watchdog,
                             ExecOutput& output, const std::string& process_id) {
  ExitReport report;
  bool exited = false;
  bool alive = true;
  v1::ExecEvent event;
  while (alive) {
    alive = co_await stream.Read(&event);
    if (!alive) break;
    if (event.has_output_batch()) {
      output.Add(event.output_batch());
      const bool room = co_await call.OutputRoom();
      if (!room) stream.TryCancel();
    } else if (event.has_keepalive()) {
      call.environment().output.Write(
          RenderNotification("exec.heartbeat", {{"process_id", process_id}}));
    } else if (event.has_exited()) {
      report = ReportExited(event.exited());
      exited = true;
    } else if (event.has_drained()) {
      TakeDrained(event.drained(), &report);
    }
  }
  const absl::Status finished = co_await stream.Finish();
  if (!exited) report = ReportBrokenStream(call, watchdog, finished);
  co_return report;
}

// How it ended, into the params of exec.exit or the result of exec.run.
void AddReport(const ExitReport& report, Json* json) {
  (*json)["exit_code"] = report.code;
  (*json)["reason"] = report.reason;
  if (!report.signal.empty()) (*json)["signal"] = report.signal;
  if (report.lossy) (*json)["lossy"] = true;
  if (report.still_open) (*json)["still_open"] = *report.still_open;
}

std::string_view FidelityWord(v1::Fidelity fidelity) {
  return fidelity == v1::FIDELITY_LINES ? "lines" : "bytes";
}

// The output of exec.run, as long as it fits.
struct Collected {
  OutputText text;
  std::string value;
  size_t encoded = 0;
  int64_t bytes = 0;
};

void Collect(const v1::ExecEvent::OutputBatch& batch, Collected* out, Collected* err) {
  for (const v1::ExecEvent::Output& part : batch.outputs()) {
    Collected* target = part.stream() == v1::OUTPUT_STREAM_STDERR ? err : out;
    target->bytes += static_cast<int64_t>(part.data().size());
    if (out->encoded + err->encoded > kMaxRunText) continue;  // it will not fit: only count on
    const std::string text = target->text.Feed(part.data());
    target->encoded += EncodedSize(text);
    target->value += text;
  }
}

absl::StatusOr<Json> RunResult(Collected out, Collected err, const ExitReport& report) {
  out.value += out.text.Finish();
  err.value += err.text.Finish();
  if (!report.message.empty()) err.value += report.message + "\n";
  if (out.encoded + err.encoded > kMaxRunText) {
    return MakeError(
        ErrorReason::ERROR_REASON_OUTPUT_TRUNCATED,
        fmt::format("the command ended ({} {}), but its output of {} bytes is more than "
                    "the {} that one answer can hold",
                    report.reason, report.code, out.bytes + err.bytes, kMaxRunText));
  }
  Json result = {{"stdout", std::move(out.value)}, {"stderr", std::move(err.value)}};
  AddReport(report, &result);
  return result;
}

absl::Status RefinedFailure(const Call& call, const absl::Status& failure) {
  const absl::StatusOr<std::string> id = call.params().Text("sandbox_id");
  return IsUnknownSandbox(failure) ? UnknownSandbox(*id) : failure;
}

}  // namespace

absl::StatusOr<v1::ExecuteRequest> MakeExecuteRequest(const Params& params) {
  v1::ExecuteRequest request;
  ASSIGN_OR_RETURN(*request.mutable_sandbox_id(), params.NonEmptyText("sandbox_id"));
  v1::ExecSpec* spec = request.mutable_spec();
  ASSIGN_OR_RETURN(const std::vector<std::string> argv, ArgvOf(params));
  for (const std::string& argument : argv) spec->mutable_argv()->add_args(argument);
  ASSIGN_OR_RETURN(*spec->mutable_cwd(), params.Text("cwd", ""));
  ASSIGN_OR_RETURN(const auto env, EnvironmentOf(params.Find("env"), "env"));
  SetEnv(env, spec->mutable_env());
  ASSIGN_OR_RETURN(const std::string user, params.Text("user", ""));
  if (!user.empty()) RETURN_IF_ERROR(SetUser(user, "user", spec->mutable_user()));
  RETURN_IF_ERROR(ReadTimeout(params, spec));
  RETURN_IF_ERROR(ReadStdin(params, spec->mutable_stdin()));
  ASSIGN_OR_RETURN(const bool detached, params.Bool("detached", false));
  request.set_detached(detached);
  spec->set_fidelity(v1::FIDELITY_BEST);
  if (!spec->has_timeout()) *request.mutable_keepalive_interval() = ToProto(kHeartbeat);
  return request;
}

ExitReport ReportOutcome(const v1::Outcome& outcome) {
  const auto signal_name = [](const v1::Outcome::Signalled& signal) {
    return signal.name().empty() ? SignalName(signal.number()) : signal.name();
  };
  switch (outcome.kind_case()) {
    case v1::Outcome::kExitCode:
      return {.code = outcome.exit_code(), .reason = "exited"};
    case v1::Outcome::kSignal:
      // 128 alone: it was a signal, and which is not known.
      return {.code = 128 + outcome.signal().number(),
              .reason = "signal",
              .signal = signal_name(outcome.signal())};
    case v1::Outcome::kTimedOut:
      return {.code = kExitTimeout, .reason = "timeout"};
    case v1::Outcome::kCancelled: {
      const v1::Outcome::Cancelled& cancelled = outcome.cancelled();
      ExitReport report = {.code = kExitCancelled, .reason = "cancelled"};
      if (cancelled.has_signal()) {
        report.signal = signal_name(cancelled.signal());
        if (cancelled.signal().number() > 0) report.code = 128 + cancelled.signal().number();
      }
      return report;
    }
    case v1::Outcome::kSpawnFailed: {
      const bool missing =
          outcome.spawn_failed().kind() == v1::Outcome::SpawnFailed::KIND_NOT_FOUND;
      return {.code = missing ? kExitNotFound : kExitNotExecutable,
              .reason = "spawn_failed",
              .message = "opensandbox: the command could not be started: " +
                         outcome.spawn_failed().message()};
    }
    default: {
      std::string what = "opensandbox: the command's exit status is not known: ";
      what += outcome.lost().reason().empty() ? "the bridge gave none" : outcome.lost().reason();
      if (outcome.lost().maybe_running()) what += "; it may still run";
      return {.code = kExitLost, .reason = "lost", .message = std::move(what)};
    }
  }
}

ExitReport ReportFailure(const absl::Status& failure, bool cancelled) {
  if (cancelled) return {.code = kExitCancelled, .reason = "cancelled"};
  const std::string why =
      failure.ok() ? "the stream ended without an exit status" : std::string(failure.message());
  return {.code = kExitLost,
          .reason = "lost",
          .message = "opensandbox: the command's exit status is not known: " + why};
}

Task<void> StartExec(Call& call) {
  absl::StatusOr<v1::ExecuteRequest> request = MakeExecuteRequest(call.params());
  if (!request.ok()) {
    call.Error(request.status());
    co_return;
  }
  Stream stream(call.scope(), absl::InfiniteDuration());
  co_await stream.Start(call.stubs().execs, &v1::ExecService::Stub::PrepareAsyncExecute, *request);
  const absl::StatusOr<v1::ExecEvent::Started> started = co_await AwaitStarted(stream);
  if (!started.ok()) {
    call.Error(RefinedFailure(call, started.status()));
    co_return;
  }
  const std::string& process_id = started->exec_id();
  Json result = {{"process_id", process_id}, {"fidelity", FidelityWord(started->fidelity())}};
  if (started->pid() > 0) result["pid"] = started->pid();
  const bool detached = request->detached();
  if (detached) result["detached"] = true;
  const Watchdog watchdog(call.environment().loop, stream, TimeoutOf(request->spec()));
  request->Clear();  // stdin may be large, and the command may run for days
  call.raw_params() = nullptr;
  call.Result(result);
  if (detached) {
    // The bridge ends the stream, not the command.
    v1::ExecEvent event;
    bool more = true;
    while (more) more = co_await stream.Read(&event);
    (void)co_await stream.Finish();
    co_return;
  }
  ExecOutput output(call.environment().output, process_id);
  ExitReport report = co_await RelayOutput(call, stream, watchdog, output, process_id);
  SayLoss(started->fidelity(), &report);
  output.Finish();
  if (!report.message.empty()) output.AddNote(report.message);
  Json end = {{"process_id", process_id}};
  AddReport(report, &end);
  call.environment().output.Write(RenderNotification("exec.exit", end));
}

Task<absl::StatusOr<Json>> RunExec(Call& call) {
  absl::StatusOr<v1::ExecuteRequest> request = MakeExecuteRequest(call.params());
  if (!request.ok()) co_return request.status();
  if (request->detached()) {
    co_return InvalidField("detached", "has no meaning in exec.run; use exec.start");
  }
  Stream stream(call.scope(), absl::InfiniteDuration());
  co_await stream.Start(call.stubs().execs, &v1::ExecService::Stub::PrepareAsyncExecute, *request);
  const absl::StatusOr<v1::ExecEvent::Started> started = co_await AwaitStarted(stream);
  if (!started.ok()) co_return RefinedFailure(call, started.status());
  const Watchdog watchdog(call.environment().loop, stream, TimeoutOf(request->spec()));
  Collected out;
  Collected err;
  std::optional<ExitReport> report;
  bool alive = true;
  v1::ExecEvent event;
  while (alive) {
    alive = co_await stream.Read(&event);
    if (alive && event.has_output_batch()) Collect(event.output_batch(), &out, &err);
    if (alive && event.has_exited()) report = ReportExited(event.exited());
    if (alive && event.has_drained() && report) TakeDrained(event.drained(), &*report);
  }
  const absl::Status finished = co_await stream.Finish();
  if (!report.has_value()) {
    if (call.scope().cancelled()) co_return finished;
    report = ReportBrokenStream(call, watchdog, finished);
  }
  SayLoss(started->fidelity(), &*report);
  co_return RunResult(std::move(out), std::move(err), *report);
}

}  // namespace bridge::epp
