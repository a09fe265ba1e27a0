// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/exec_session.h"

#include <fmt/format.h>
#include <signal.h>

#include <thread>
#include <utility>

#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::ExecEvent;
using sandbox::bridge::v1::Outcome;

constexpr absl::Duration kKillTimeout = absl::Seconds(5);

Failure LostFailure(const Outcome& outcome) {
  return {.reason = "OUTCOME_LOST",
          .message = fmt::format("the command {}", OutcomeText(outcome)),
          .advice = "Look at the sandbox (`sbx info`, `sbx ps`) before you run the command again."};
}

Failure SilentFailure(std::string_view where, std::chrono::milliseconds silence) {
  return {.reason = "BRIDGE_SILENT",
          .message = fmt::format("the bridge at {} has not been heard of for {}", where,
                                 DurationText(static_cast<double>(silence.count()) * 1e-3)),
          .advice = "Check the network to the bridge; the command was killed if the bridge lives.",
          .retryable = true};
}

}  // namespace

ExecSession::ExecSession(Context& context, sandbox::bridge::v1::ExecuteRequest request,
                         ExecTimes times)
    : context_(context),
      request_(std::move(request)),
      times_(times),
      call_(context.bridge.NewContext(absl::InfiniteDuration())) {}

int ExecSession::Run() {
  grpc::Status status;
  {
    const Interrupts::Scope scope(context_.interrupts,
                                  [this](int) { RequestStop(Stop::kInterrupted); });
    std::thread supervisor([this] { Supervise(); });
    const auto reader = context_.bridge.exec().Execute(call_.get(), request_);
    ReadEvents(*reader);
    status = reader->Finish();
    {
      const std::lock_guard lock(mu_);
      finished_ = true;
    }
    changed_.notify_all();
    supervisor.join();
  }
  return Conclude(status);
}

void ExecSession::ReadEvents(grpc::ClientReader<ExecEvent>& reader) {
  ExecEvent event;
  for (;;) {
    {
      const std::lock_guard lock(mu_);
      reading_ = true;
      reading_since_ = Clock::now();
    }
    const bool more = reader.Read(&event);
    {
      const std::lock_guard lock(mu_);
      reading_ = false;
      if (more && event.has_started()) exec_id_ = event.started().exec_id();
    }
    if (!more) return;
    OnEvent(event);
  }
}

void ExecSession::OnEvent(const ExecEvent& event) {
  switch (event.event_case()) {
    case ExecEvent::kOutputBatch:
      for (const ExecEvent::Output& output : event.output_batch().outputs()) OnOutput(output);
      return;
    case ExecEvent::kExited:
      outcome_ = event.exited().outcome();
      break;
    case ExecEvent::kDrained:
      OnDrained(event.drained());
      break;
    case ExecEvent::kStarted:
      if (request_.detached() && !context_.json) {
        Emit(context_.streams.Out(event.started().exec_id() + "\n"));
      }
      detached_id_printed_ = request_.detached();
      break;
    case ExecEvent::kKeepalive:
    case ExecEvent::EVENT_NOT_SET:
      return;
  }
  if (context_.json) Emit(context_.streams.Out(JsonLine(ToJson(event))));
}

void ExecSession::OnOutput(const ExecEvent::Output& output) {
  const bool is_stderr = output.stream() == sandbox::bridge::v1::OUTPUT_STREAM_STDERR;
  if (context_.json) {
    Json line = {{"stream", is_stderr ? "STDERR" : "STDOUT"}, {"offset", output.offset()}};
    PutBytes(line, "data", output.data());
    Emit(context_.streams.Out(JsonLine(Json{{"output", std::move(line)}})));
  } else {
    Emit(is_stderr ? context_.streams.Err(output.data()) : context_.streams.Out(output.data()));
  }
}

void ExecSession::OnDrained(const ExecEvent::Drained& drained) {
  if (context_.json) return;  // the event itself says so
  if (drained.stdout_truncated() || drained.stderr_truncated()) {
    context_.streams.Note(
        fmt::format("output was cut: {} bytes of stdout and {} of stderr were "
                    "printed by the command; see --max-output",
                    drained.stdout_bytes(), drained.stderr_bytes()));
  }
  const bool asked_for_lines = request_.spec().fidelity() == sandbox::bridge::v1::FIDELITY_LINES;
  if (drained.lossy() && !asked_for_lines) {
    context_.streams.Note("the output may differ from what was printed; see --fidelity");
  }
  if (drained.still_open()) context_.streams.Note(kStillOpenNote);
}

void ExecSession::Emit(const absl::Status& written) {
  if (written.ok() || absl::IsCancelled(written)) return;
  if (!absl::IsAborted(written)) local_failure_ = std::string(written.message());
  RequestStop(absl::IsAborted(written) ? Stop::kNoReader : Stop::kLocal);
}

void ExecSession::RequestStop(Stop stop) {
  {
    const std::lock_guard lock(mu_);
    if (stop_ == Stop::kNone) stop_ = stop;
  }
  changed_.notify_all();
}

bool ExecSession::IsSilent(Clock::time_point now) const {
  return reading_ && now - reading_since_ >= times_.silence;
}

void ExecSession::Supervise() {
  std::unique_lock lock(mu_);
  while (!finished_ && stop_ == Stop::kNone) {
    changed_.wait_until(lock, (reading_ ? reading_since_ : Clock::now()) + times_.silence);
    if (!finished_ && stop_ == Stop::kNone && IsSilent(Clock::now())) stop_ = Stop::kSilent;
  }
  if (finished_) return;
  if (stop_ != Stop::kSilent) {
    const std::string exec_id = exec_id_;
    lock.unlock();
    KillRemote(exec_id);
    lock.lock();
    changed_.wait_for(lock, times_.farewell, [this] { return finished_; });
  }
  if (finished_) return;
  lock.unlock();
  call_->TryCancel();
  context_.streams.Abandon();
}

// The kill through SignalExec brings the outcome back on the stream, which a cancelled call cannot.
void ExecSession::KillRemote(const std::string& exec_id) {
  if (exec_id.empty()) {
    call_->TryCancel();
    return;
  }
  sandbox::bridge::v1::SignalExecRequest request;
  request.set_sandbox_id(request_.sandbox_id());
  request.set_exec_id(exec_id);
  request.mutable_signal()->set_number(SIGKILL);
  sandbox::bridge::v1::SignalExecResponse response;
  const auto context = context_.bridge.NewContext(kKillTimeout);
  const grpc::Status status = context_.bridge.exec().SignalExec(context.get(), request, &response);
  // NOT_FOUND: it has just ended, and its outcome is on the way.
  if (!status.ok() && status.error_code() != grpc::StatusCode::NOT_FOUND) call_->TryCancel();
}

int ExecSession::Conclude(const grpc::Status& status) {
  if (stop_ != Stop::kNone) return ConcludeStopped(status);
  if (!status.ok()) return FailCall(context_, status, StartFailureCode(status));
  if (request_.detached() && detached_id_printed_) return kExitOk;
  if (!outcome_) {
    return Fail(context_,
                {.reason = "UPSTREAM_PROTOCOL",
                 .message = "the stream ended without an outcome",
                 .advice = "A defect of the bridge; please report it with the bridge's log."},
                kExitNoVerdict);
  }
  return ConcludeOutcome();
}

int ExecSession::ConcludeStopped(const grpc::Status& status) {
  const int signal = context_.interrupts.first();
  switch (stop_) {
    case Stop::kNoReader:
      return kExitSignalBase + SIGPIPE;
    case Stop::kLocal:
      return Fail(context_,
                  LocalFailure(local_failure_, "The command was killed; mend stdout and repeat."),
                  kExitNoVerdict);
    case Stop::kSilent:
      return Fail(context_, SilentFailure(context_.bridge.where(), times_.silence), kExitNoVerdict);
    case Stop::kInterrupted:
    case Stop::kNone:
      break;
  }
  if (outcome_ && outcome_->has_exit_code()) return outcome_->exit_code();  // it won the race
  const bool call_failed = !status.ok() && status.error_code() != grpc::StatusCode::CANCELLED;
  if (call_failed) return FailCall(context_, status, kExitNoVerdict);
  context_.streams.Note(outcome_
                            ? fmt::format("interrupted; the command {}", OutcomeText(*outcome_))
                            : std::string("interrupted; the bridge was told to kill the "
                                          "command and has not confirmed it"));
  return kExitSignalBase + signal;
}

int ExecSession::ConcludeOutcome() {
  const int code = OutcomeExitCode(*outcome_);
  if (outcome_->has_lost() || outcome_->kind_case() == Outcome::KIND_NOT_SET) {
    return Fail(context_, LostFailure(*outcome_), code);
  }
  if (!outcome_->has_exit_code() && !context_.json) {
    context_.streams.Note(fmt::format("the command {}", OutcomeText(*outcome_)));
  }
  return code;
}

}  // namespace bridge::cli
