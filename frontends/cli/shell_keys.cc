// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/shell_keys.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace bridge::cli {
namespace {

namespace v1 = sandbox::bridge::v1;

// More stays with the terminal until there is an attachment again.
constexpr size_t kMaxHeld = 4096;

int NewEvent() { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void Raise(int event_fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(event_fd, &one, sizeof one);
}

void Lower(int event_fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t ignored = read(event_fd, &count, sizeof count);
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

ShellKeys::ShellKeys(int terminal)
    : terminal_(terminal), wake_fd_(NewEvent()), left_fd_(NewEvent()), thread_([this] { Run(); }) {}

ShellKeys::~ShellKeys() {
  {
    const std::lock_guard lock(mu_);
    over_ = true;
  }
  Raise(wake_fd_);
  thread_.join();
  close(wake_fd_);
  close(left_fd_);
}

void ShellKeys::Begin(grpc::ClientContext& call, Stream& stream) {
  const std::lock_guard lock(mu_);
  call_ = &call;
  stream_ = &stream;
  typed_ = 0;
  if (left_) call.TryCancel();
}

void ShellKeys::Attached() {
  const std::lock_guard lock(mu_);
  attached_ = true;
  // The window may have changed since the start, and an old process knows another one.
  SendSize();
  SendHeld();
  Raise(wake_fd_);
}

int64_t ShellKeys::End() {
  const std::lock_guard lock(mu_);
  call_ = nullptr;
  stream_ = nullptr;
  attached_ = false;
  return typed_;
}

void ShellKeys::Run() {
  while (true) {
    bool reads = false;
    {
      const std::lock_guard lock(mu_);
      if (over_) return;
      reads = !left_ && held_.size() < kMaxHeld;
    }
    pollfd wanted[] = {
        {reads ? terminal_ : -1, POLLIN, 0}, {window_.fd(), POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    if (poll(wanted, 3, -1) < 0) continue;  // EINTR
    if (wanted[2].revents != 0) Lower(wake_fd_);
    if (wanted[1].revents != 0) {
      window_.Take();
      const std::lock_guard lock(mu_);
      if (attached_) SendSize();
    }
    if (wanted[0].revents != 0) TakeKeys();
  }
}

void ShellKeys::TakeKeys() {
  std::array<char, kMaxHeld> keys;
  const ssize_t n = read(terminal_, keys.data(), keys.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) return Leave();  // the terminal is gone
  bool leave = false;
  {
    const std::lock_guard lock(mu_);
    held_ += escapes_.Feed(std::string_view(keys.data(), static_cast<size_t>(n)), &leave);
    if (attached_) SendHeld();
  }
  if (leave) Leave();
}

void ShellKeys::Leave() {
  const std::lock_guard lock(mu_);
  left_ = true;
  Raise(left_fd_);
  if (call_ != nullptr) call_->TryCancel();
}

// A write that fails belongs to a broken call. Whether its bytes arrived is not known, and nothing
// is typed twice.
void ShellKeys::SendHeld() {
  if (held_.empty()) return;
  v1::AttachProcessRequest request;
  request.mutable_stdin()->set_offset(typed_);
  typed_ += static_cast<int64_t>(held_.size());
  request.mutable_stdin()->set_data(std::exchange(held_, std::string()));
  stream_->Write(request);
}

void ShellKeys::SendSize() {
  const WindowSize size = WindowSizeOf(terminal_);
  v1::AttachProcessRequest request;
  request.mutable_resize()->set_rows(size.rows);
  request.mutable_resize()->set_columns(size.columns);
  stream_->Write(request);
}

}  // namespace bridge::cli
