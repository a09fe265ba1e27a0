// SPDX-License-Identifier: Apache-2.0
//
// Part of exec.h: what readers and writers of an exec see.
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "bridge/base/signal_names.h"
#include "bridge/local/execd/extra/exec.h"
#include "bridge/local/execd/extra/frame.h"
#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd::extra {
namespace {

std::string TimeText(absl::Time t) {
  const int64_t nanos = absl::ToUnixNanos(t);
  return GoTime(nanos / 1'000'000'000, nanos % 1'000'000'000);
}

const char* Bool(bool value) { return value ? "true" : "false"; }

void Wake(int fd) {
  const uint64_t one = 1;
  (void)!write(fd, &one, sizeof(one));
}

}  // namespace

Exec::Reader::Reader(std::shared_ptr<Exec> exec, int64_t out, int64_t err)
    : exec_(std::move(exec)),
      wake_fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)),
      out_(out),
      err_(err) {}

Exec::Reader::~Reader() {
  {
    const std::lock_guard lock(exec_->mu_);
    exec_->readers_.erase(this);
  }
  exec_->WakeDriver();  // the output may go on
  close(wake_fd_);
}

// ---- readers

std::variant<std::unique_ptr<Exec::Reader>, Failure> Exec::Attach(int64_t out, int64_t err) {
  std::unique_ptr<Reader> reader(new Reader(shared_from_this(), out, err));
  const std::lock_guard lock(mu_);
  if (out > out_.end() || err > err_.end()) {
    return Invalid(out > out_.end() ? "stdout" : "stderr", "that much was not printed yet");
  }
  if (out < out_.begin() || err < err_.begin()) {
    Failure gone{410, "OUTPUT_GONE", "output older than what is held"};
    gone.With("first_stdout", std::to_string(out_.begin()));
    gone.With("first_stderr", std::to_string(err_.begin()));
    return gone;
  }
  readers_.insert(reader.get());
  return reader;
}

std::vector<std::string> Exec::NextFrames(Reader& reader, size_t most, bool* last) {
  uint64_t count;
  (void)!read(reader.wake_fd_, &count, sizeof(count));
  std::vector<std::string> frames;
  *last = false;
  size_t size = 0;
  {
    const std::lock_guard lock(mu_);
    const auto output = [&](FrameType type, const OutputRing& ring, int64_t& place) {
      while (size < most && place < ring.end()) {
        const std::string bytes = ring.Read(place, std::min(kMaxFramePayloadBytes, most - size));
        frames.push_back(EncodeFrame(type, static_cast<uint64_t>(place), bytes));
        size += bytes.size();
        place += static_cast<int64_t>(bytes.size());
      }
    };
    output(FrameType::kStdout, out_, reader.out_);
    output(FrameType::kStderr, err_, reader.err_);
    if (has_stdin_ && taken_ > reader.acked_) {
      reader.acked_ = taken_;
      frames.push_back(EncodeFrame(FrameType::kStdinAck, static_cast<uint64_t>(taken_), ""));
    }
    if (has_stdin_ && stdin_closed_ && !reader.told_closed_) {
      reader.told_closed_ = true;
      frames.push_back(EncodeFrame(FrameType::kStdinClosed, static_cast<uint64_t>(taken_), ""));
    }
    if (status_ && !reader.told_exit_) {
      reader.told_exit_ = true;
      frames.push_back(EncodeFrame(FrameType::kExited, 0, OutcomeJson()));
    }
    const bool all = reader.out_ == out_.end() && reader.err_ == err_.end();
    if (drained_ && all) {
      frames.push_back(EncodeFrame(FrameType::kDrained, 0, DrainedJson()));
      *last = true;
    } else if (!all) {
      Wake(reader.wake_fd_);  // there is more
    }
  }
  WakeDriver();  // there may be room now
  return frames;
}

std::string Exec::StartedJson() const {
  const std::string pid = std::to_string(process_->pid());
  return "{\"exec_id\":\"" + id_ + "\",\"pid\":" + pid + ",\"pgid\":" + pid + ",\"started_at\":\"" +
         TimeText(started_at_) + "\",\"running\":" + Bool(running()) +
         ",\"stdin_window\":" + std::to_string(kStdinWindowBytes) + "}";
}

std::string Exec::StartedFrame() const {
  return EncodeFrame(FrameType::kStarted, 0, StartedJson());
}

// ---- input

int64_t Exec::NextInput() const {
  return taken_ + static_cast<int64_t>(input_.size() - input_used_);
}

Failure Exec::StdinFailure(std::string_view code, std::string_view message) const {
  Failure failure{409, std::string(code), std::string(message)};
  return failure.With("taken", std::to_string(NextInput()));
}

std::optional<Failure> Exec::WriteInput(int64_t offset, std::string_view bytes, size_t* accepted) {
  const std::lock_guard lock(mu_);
  *accepted = 0;
  if (stdin_closed_) return StdinFailure("STDIN_CLOSED", "no input is wanted any more");
  if (offset > NextInput()) return StdinFailure("STDIN_OFFSET", "input before this is missing");
  *accepted = static_cast<size_t>(
      std::min<int64_t>(NextInput() - offset, static_cast<int64_t>(bytes.size())));
  bytes.remove_prefix(*accepted);
  if (bytes.empty()) return std::nullopt;
  if (input_end_) return StdinFailure("STDIN_CLOSED", "the end of the input was sent");
  input_.erase(0, input_used_);
  input_used_ = 0;
  const int64_t room = kStdinWindowBytes - static_cast<int64_t>(input_.size());
  const size_t n =
      static_cast<size_t>(std::clamp<int64_t>(room, 0, static_cast<int64_t>(bytes.size())));
  input_.append(bytes.substr(0, n));
  *accepted += n;
  PushInput();
  if (!input_.empty()) WakeDriver();
  return std::nullopt;
}

std::optional<Failure> Exec::EndInput(int64_t length) {
  const std::lock_guard lock(mu_);
  if (input_end_ == length) return std::nullopt;  // a repeat
  if (stdin_closed_ || input_end_) return StdinFailure("STDIN_CLOSED", "the input has ended");
  if (length != NextInput()) {
    return StdinFailure("STDIN_OFFSET", "the input has another length so far");
  }
  input_end_ = length;
  PushInput();
  return std::nullopt;
}

bool Exec::AwaitTaken(int64_t number, absl::Duration patience) {
  std::unique_lock lock(mu_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(patience),
                    [&] { return taken_ >= number || stdin_closed_; });
  return taken_ >= number;
}

int64_t Exec::taken() const {
  const std::lock_guard lock(mu_);
  return taken_;
}

// ---- signals and the end

std::optional<Failure> Exec::Signal(int number, bool group) {
  // Under the lock: the end cannot be seen without its reason.
  const std::lock_guard lock(mu_);
  const bool sent = !status_ && (group ? process_->SignalGroup(number) : process_->Signal(number));
  if (!sent) return Failure{409, "NOT_RUNNING", "the exec has ended"};
  requested_signals_ |= uint64_t{1} << (number - 1);
  return std::nullopt;
}

void Exec::Kill() { (void)Signal(SIGKILL, /*group=*/true); }

bool Exec::AwaitEnd(absl::Duration patience) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(patience),
                           [&] { return status_.has_value(); });
}

std::optional<absl::Time> Exec::finished_at() const {
  const std::lock_guard lock(mu_);
  if (!status_) return std::nullopt;
  return finished_at_;
}

std::string Exec::OutcomeJson() const {
  std::string out;
  // Of a death by a signal it says whether a client sent that very one, not just any.
  bool by_request = requested_signals_ != 0;
  if (WIFSIGNALED(*status_)) {
    const int number = WTERMSIG(*status_);
    by_request = (requested_signals_ >> (number - 1) & 1) != 0;
    out = "{\"kind\":\"signalled\",\"signal\":" + std::to_string(number) + ",\"signal_name\":\"" +
          SignalName(number) + "\",\"core_dumped\":" + Bool(WCOREDUMP(*status_));
  } else {
    out = "{\"kind\":\"exited\",\"code\":" + std::to_string(WEXITSTATUS(*status_));
  }
  out += std::string(",\"timed_out\":") + Bool(timed_out_) +
         ",\"signalled_by_request\":" + Bool(by_request) + ",\"finished_at\":\"" +
         TimeText(finished_at_) +
         "\",\"ran_ms\":" + std::to_string(absl::ToInt64Milliseconds(finished_at_ - started_at_));
  return out + "}";
}

std::string Exec::OpenJson() const {
  return std::string("\"stdout_open\":") + Bool(out_open_) + ",\"stderr_open\":" + Bool(err_open_);
}

std::string Exec::DrainedJson() const {
  return "{\"stdout_bytes\":" + std::to_string(out_.end()) +
         ",\"stderr_bytes\":" + std::to_string(err_.end()) + "," + OpenJson() + "}";
}

std::string Exec::InfoJson() const {
  const std::lock_guard lock(mu_);
  std::string out = "{\"exec_id\":\"" + id_ + "\",\"pid\":" + std::to_string(process_->pid()) +
                    ",\"pgid\":" + std::to_string(process_->pid()) +
                    ",\"running\":" + Bool(!status_) + ",\"started_at\":\"" +
                    TimeText(started_at_) + "\",\"on_disconnect\":\"" +
                    (kill_on_disconnect_ ? "kill" : "detach") + "\"";
  const auto number = [&](const char* name, int64_t value) {
    out += std::string(",\"") + name + "\":" + std::to_string(value);
  };
  number("stdout_bytes", out_.end());
  number("stderr_bytes", err_.end());
  number("first_stdout", out_.begin());
  number("first_stderr", err_.begin());
  number("stdin_taken", taken_);
  out += std::string(",\"stdin_open\":") + Bool(!stdin_closed_);
  number("attached", static_cast<int64_t>(readers_.size()));
  if (status_) out += ",\"outcome\":" + OutcomeJson() + ",\"drained\":" + Bool(drained_);
  if (drained_) out += "," + OpenJson();
  return out + "}";
}

}  // namespace bridge::local::execd::extra
