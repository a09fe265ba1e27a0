// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/shell_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

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
         reason == "UPSTREAM_UNAVAILABLE" || reason == "DRAINING";
}

}  // namespace

std::string EscapeFilter::Feed(std::string_view keys, bool* leave) {
  std::string out;
  for (const char key : keys) {
    if (std::exchange(tilde_, false)) {
      if (key == '.') {
        *leave = true;
        return out;
      }
      out += '~';
      if (key == '~') {
        line_start_ = false;
        continue;
      }
    } else if (line_start_ && key == '~') {
      tilde_ = true;
      continue;
    }
    out += key;
    line_start_ = key == '\r' || key == '\n';
  }
  return out;
}

ShellSession::ShellSession(Context& context, ShellOptions options)
    : context_(context),
      options_(std::move(options)),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      process_id_(options_.process_id) {}

ShellSession::~ShellSession() { close(stop_fd_); }

int ShellSession::Run() {
  if (process_id_.empty()) {
    const grpc::Status started = Start();
    if (!started.ok()) return FailCall(context_, started, kExitNoVerdict);
  }
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
    DeleteOwn();
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
  for (int tries = 0;; ++tries) {
    const End end = AttachOnce();
    if (end != End::kLost || context_.interrupts.first() != 0) return end;
    if (fresh_) tries = 0;
    if (tries >= kMaxTries || !attached_once_ || !MayComeBack(status_)) return end;
    if (!WaitBeforeRetry(tries)) return end;
  }
}

// False: a signal came, and it is over.
bool ShellSession::WaitBeforeRetry(int tries) const {
  pollfd wanted = {context_.streams.abandon_fd(), POLLIN, 0};
  return poll(&wanted, 1, kFirstPauseMs << tries) == 0;
}

ShellSession::End ShellSession::AttachOnce() {
  fresh_ = false;
  typed_ = 0;
  const auto call = context_.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(context_.interrupts, [&](int) {
    call->TryCancel();
    context_.streams.Abandon();
  });
  const auto stream = context_.bridge.processes().AttachProcess(call.get());
  v1::AttachProcessRequest request;
  v1::AttachProcessRequest::Attach* attach = request.mutable_attach();
  attach->set_sandbox_id(options_.sandbox_id);
  attach->set_process_id(process_id_);
  // One that runs already is shown from now on: its screen cannot be had from the middle.
  if (attached_once_ || options_.process_id.empty()) attach->set_offset(next_);
  // After a broken connection the bridge may still take the old one for the holder.
  attach->set_takeover(options_.takeover || attached_once_);
  (void)stream->Write(request);
  std::optional<std::thread> keys;
  v1::ProcessEvent event;
  while (stream->Read(&event)) {
    if (event.has_attached() && !keys) {
      attached_once_ = true;
      if (!options_.process_id.empty() && next_ == 0) next_ = event.attached().offset();
      keys.emplace([&] { PumpKeys(*stream, *call); });
    }
    if (!TakeEvent(event)) call->TryCancel();
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(stop_fd_, &one, sizeof one);
  if (keys) keys->join();
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = read(stop_fd_, &count, sizeof count);
  status_ = stream->Finish();
  if (left_) return End::kLeft;
  if (displaced_) return End::kDisplaced;
  return drained_ ? End::kExited : End::kLost;
}

// False: nobody can see the output any more.
bool ShellSession::TakeEvent(const v1::ProcessEvent& event) {
  if (event.has_output()) {
    fresh_ = true;
    next_ = event.output().offset() + static_cast<int64_t>(event.output().data().size());
    return context_.streams.Out(event.output().data()).ok();
  }
  if (event.has_exited()) outcome_ = event.exited().outcome();
  if (event.has_drained()) drained_ = true;
  if (event.has_displaced()) displaced_ = true;
  return true;
}

void ShellSession::PumpKeys(Stream& stream, grpc::ClientContext& call) {
  // The window may have changed since the start, and an old process knows another one.
  bool alive = SendSize(stream);
  std::array<char, 4096> keys;
  while (alive) {
    pollfd wanted[] = {
        {context_.streams.in(), POLLIN, 0}, {window_.fd(), POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (poll(wanted, 3, -1) < 0 && errno != EINTR) break;
    if (wanted[2].revents != 0) return;
    if (wanted[1].revents != 0) {
      window_.Take();
      alive = SendSize(stream);
    }
    if (wanted[0].revents == 0) continue;
    const ssize_t n = read(context_.streams.in(), keys.data(), keys.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {  // the terminal is gone
      left_ = true;
      call.TryCancel();
      return;
    }
    bool leave = false;
    const std::string bytes =
        escapes_.Feed(std::string_view(keys.data(), static_cast<size_t>(n)), &leave);
    alive = SendKeys(stream, bytes);
    if (!leave) continue;
    left_ = true;
    call.TryCancel();
    return;
  }
}

bool ShellSession::SendKeys(Stream& stream, std::string_view keys) {
  if (keys.empty()) return true;
  v1::AttachProcessRequest request;
  request.mutable_stdin()->set_offset(typed_);
  request.mutable_stdin()->set_data(std::string(keys));
  typed_ += static_cast<int64_t>(keys.size());
  return stream.Write(request);
}

bool ShellSession::SendSize(Stream& stream) {
  const WindowSize size = WindowSizeOf(context_.streams.in());
  v1::AttachProcessRequest request;
  request.mutable_resize()->set_rows(size.rows);
  request.mutable_resize()->set_columns(size.columns);
  return stream.Write(request);
}

int ShellSession::Conclude(End end) {
  const int signal = context_.interrupts.first();
  if (end == End::kExited && outcome_) {
    DeleteOwn();
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
    } else {
      context_.streams.Note("left; the process is ended");
      DeleteOwn();
    }
    return signal != 0 ? kExitSignalBase + signal : kExitNoVerdict;
  }
  if (attached_once_) {
    context_.streams.Note(
        fmt::format("the process may run on; come back with: sbx shell --attach {} {}", process_id_,
                    options_.sandbox_id));
  } else {
    DeleteOwn();
  }
  return FailCall(context_, status_, kExitNoVerdict);
}

// What we started and is over, or is to be; its output is not needed any more.
void ShellSession::DeleteOwn() {
  if (!options_.process_id.empty() || process_id_.empty()) return;
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
}

}  // namespace bridge::cli
