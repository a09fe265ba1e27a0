// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/shell_session.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "frontends/cli/raw_terminal.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

namespace v1 = sandbox::bridge::v1;
using Processes = v1::ProcessService;

constexpr int kMaxTries = 6;
constexpr int kFirstPauseMs = 200;

bool MayComeBack(const grpc::Status& status) {
  const std::string reason = FailureOf(status, "").reason;
  return reason == "SANDBOX_UNREACHABLE" || reason == "BRIDGE_UNREACHABLE" ||
         reason == "UPSTREAM_UNAVAILABLE" || reason == "UPSTREAM_TIMEOUT" || reason == "DRAINING";
}

}  // namespace

ShellSession::ShellSession(Context& context, ShellOptions options)
    : context_(context), options_(std::move(options)), process_id_(options_.process_id) {}

int ShellSession::Run() {
  if (process_id_.empty()) {
    const grpc::Status started = Start();
    if (!started.ok()) return FailCall(context_, started, StartFailureCode(started));
  }
  // From here on there is something to clean up, which a first signal does not stop: that of a
  // closed window may come after all else that tells of it.
  const Interrupts::Scope scope(context_.interrupts, [](int) {});
  End end = End::kLost;
  absl::Status changed;
  {
    auto raw = RawTerminal::Enter(context_.streams.in());
    changed = raw.status();
    if (raw.ok()) {
      context_.interrupts.OnEnd([terminal = raw->get()] { terminal->Restore(); });
      end = Hold();
      context_.interrupts.OnEnd(nullptr);
    }
  }
  if (!changed.ok()) {
    (void)DeleteOwn();
    return Fail(context_, LocalFailure(changed, "Run it on a terminal."), kExitNoVerdict);
  }
  return Conclude(end);
}

grpc::Status ShellSession::Start() {
  v1::StartProcessRequest request;
  request.set_sandbox_id(options_.sandbox_id);
  *request.mutable_spec() = options_.spec;
  const WindowSize size = WindowSizeOf(context_.streams.in());
  request.mutable_spec()->mutable_terminal()->set_rows(size.rows);
  request.mutable_spec()->mutable_terminal()->set_columns(size.columns);
  // So that nothing is printed before we listen.
  request.set_start_on_attach(true);
  v1::StartProcessResponse response;
  const grpc::Status status = Call(context_, context_.bridge.processes(),
                                   &Processes::Stub::StartProcess, request, &response);
  process_id_ = response.process_id();
  return status;
}

// Attaches until the process has ended or there is nothing to be attached to.
ShellSession::End ShellSession::Hold() {
  // Between two attachments a signal ends the waiting.
  const Interrupts::Scope scope(context_.interrupts, [&](int) { context_.streams.Abandon(); });
  ShellKeys keys(context_.streams.in());
  for (int tries = 0;; ++tries) {
    const End end = AttachOnce(keys);
    if (end != End::kLost || context_.interrupts.first() != 0) return end;
    if (proven_) tries = 0;
    if (tries >= kMaxTries || !attached_once_ || !MayComeBack(status_)) return end;
    if (!WaitBeforeRetry(tries, keys)) return keys.left() ? End::kLeft : end;
  }
}

// False: a signal came or the person leaves, and it is over.
bool ShellSession::WaitBeforeRetry(int tries, const ShellKeys& keys) const {
  pollfd wanted[] = {{context_.streams.abandon_fd(), POLLIN, 0}, {keys.left_fd(), POLLIN, 0}};
  const absl::Time until = absl::Now() + absl::Milliseconds(kFirstPauseMs << tries);
  while (true) {
    const absl::Duration left = std::max(until - absl::Now(), absl::ZeroDuration());
    const int ready = poll(wanted, 2, static_cast<int>(absl::ToInt64Milliseconds(left)));
    // The window has another size now: SIGWINCH.
    if (ready < 0 && errno == EINTR) continue;
    return ready == 0;
  }
}

ShellSession::End ShellSession::AttachOnce(ShellKeys& keys) {
  proven_ = attached_ = false;
  acked_ = 0;
  const auto call = context_.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(context_.interrupts, [&](int) {
    call->TryCancel();
    context_.streams.Abandon();
  });
  if (context_.interrupts.first() != 0) call->TryCancel();  // it came before this scope
  const auto stream = context_.bridge.processes().AttachProcess(call.get());
  keys.Begin(*call, *stream);
  v1::AttachProcessRequest request;
  v1::AttachProcessRequest::Attach* attach = request.mutable_attach();
  attach->set_sandbox_id(options_.sandbox_id);
  attach->set_process_id(process_id_);
  // One that runs already is shown from now on: its screen cannot be had from the middle.
  if (attached_once_ || options_.process_id.empty()) attach->set_offset(next_);
  // After a broken connection the bridge may still take the old one for the holder.
  attach->set_takeover(options_.takeover || attached_once_);
  (void)stream->Write(request);
  v1::ProcessEvent event;
  bool seen = true;
  while (stream->Read(&event)) {
    if (event.has_attached()) TakeAttached(event.attached(), keys);
    if (TakeEvent(event)) continue;
    seen = false;
    call->TryCancel();
  }
  in_doubt_ += std::max<int64_t>(0, keys.End() - acked_);
  status_ = stream->Finish();
  // A window that was closed may show in the output before it does in the input.
  if (keys.left() || !seen) return End::kLeft;
  if (displaced_) return End::kDisplaced;
  return drained_ ? End::kExited : End::kLost;
}

void ShellSession::TakeAttached(const v1::ProcessEvent::Attached& attached, ShellKeys& keys) {
  if (std::exchange(attached_, true)) return;
  attached_once_ = true;
  if (!options_.process_id.empty() && next_ == 0) next_ = attached.offset();
  if (in_doubt_ > 0) {
    // The terminal is raw: a line wants both of its ends.
    context_.streams.Say(fmt::format(
        "\r\nsbx: the connection broke and was made again; {} typed byte{} may not have "
        "arrived\r\n",
        in_doubt_, in_doubt_ == 1 ? "" : "s"));
    in_doubt_ = 0;
  }
  keys.Attached();
}

// False: nobody can see the output any more.
bool ShellSession::TakeEvent(const v1::ProcessEvent& event) {
  // Also a keepalive: connections that break one by one during a quiet day do not add up.
  if (!event.has_attached()) proven_ = true;
  if (event.has_output()) {
    next_ = event.output().offset() + static_cast<int64_t>(event.output().data().size());
    return context_.streams.Out(event.output().data()).ok();
  }
  if (event.has_stdin_ack()) acked_ = event.stdin_ack().offset();
  if (event.has_exited()) outcome_ = event.exited().outcome();
  if (event.has_drained()) drained_ = true;
  if (event.has_displaced()) displaced_ = true;
  return true;
}

int ShellSession::Conclude(End end) {
  const int signal = context_.interrupts.first();
  if (end == End::kExited && outcome_) {
    (void)DeleteOwn();
    const int code = OutcomeExitCode(*outcome_);
    if (!outcome_->has_exit_code()) {
      context_.streams.Note(fmt::format("the process {}", OutcomeText(*outcome_)));
    }
    return code;
  }
  if (end == End::kDisplaced) {
    context_.streams.Note("another client has taken the terminal");
    return kExitNoVerdict;
  }
  if (end == End::kLeft || signal != 0) {
    if (options_.keep || !options_.process_id.empty()) {
      context_.streams.Note(
          fmt::format("the process runs on; come back with: sbx shell --attach {} {}", process_id_,
                      options_.sandbox_id));
    } else if (DeleteOwn()) {
      context_.streams.Note("left; the process is ended");
    }
    return signal != 0 ? kExitSignalBase + signal : kExitNoVerdict;
  }
  if (attached_once_) {
    context_.streams.Note(
        fmt::format("the process may run on; come back with: sbx shell --attach {} {}", process_id_,
                    options_.sandbox_id));
  } else {
    (void)DeleteOwn();
  }
  return FailCall(context_, status_, kExitNoVerdict);
}

// What we started and is over, or is to be; its output is not needed any more. False: it may be
// left behind, which was said.
bool ShellSession::DeleteOwn() {
  if (!options_.process_id.empty() || process_id_.empty()) return true;
  v1::DeleteProcessRequest request;
  request.set_sandbox_id(options_.sandbox_id);
  request.set_process_id(process_id_);
  v1::DeleteProcessResponse response;
  const auto call = context_.bridge.NewContext(kUnaryTimeout);
  const grpc::Status status =
      context_.bridge.processes().DeleteProcess(call.get(), request, &response);
  if (!status.ok()) {
    context_.streams.Note(fmt::format("the process {} may be left behind", process_id_));
  }
  return status.ok();
}

}  // namespace bridge::cli
