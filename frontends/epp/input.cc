// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "bridge/base/error.h"

namespace bridge::epp {
namespace {

constexpr size_t kReadBytes = 256 * 1024;

}  // namespace

bool PendingBytes::Take(size_t bytes) {
  size_t held = held_.load();
  do {
    if (held + bytes > limit_) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes));
  return true;
}

Input::Input(int fd, PendingBytes& pending, InputReceiver& receiver)
    : fd_(fd), pending_(pending), receiver_(receiver) {
  if (pipe2(wake_, O_CLOEXEC) != 0) wake_[0] = wake_[1] = -1;
  thread_ = std::thread([this] { Run(); });
}

Input::~Input() {
  Stop();
  if (wake_[0] >= 0) close(wake_[0]);
}

void Input::Stop() {
  if (wake_[1] >= 0) close(std::exchange(wake_[1], -1));
  if (thread_.joinable()) thread_.join();
}

void Input::Run() {
  LineSplitter splitter(kMaxLineBytes, *this);
  const auto buffer = std::make_unique<char[]>(kReadBytes);
  while (true) {
    pollfd fds[2] = {{fd_, POLLIN, 0}, {wake_[0], 0, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
    if (fds[1].revents != 0) break;
    if (fds[0].revents == 0) continue;
    const ssize_t n = read(fd_, buffer.get(), kReadBytes);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) break;
    if (n > 0) splitter.Feed({buffer.get(), static_cast<size_t>(n)});
  }
  splitter.Finish();
  receiver_.OnEndOfInput();
}

void Input::OnLine(std::string line) {
  Message message = ParseMessage(std::move(line));
  if (!pending_.Take(message.bytes)) {
    message.params = Json::object();
    message.bytes = 0;
    message.error = MakeError(ErrorReason::ERROR_REASON_TOO_MANY_STREAMS,
                              "too many large requests at once; wait for the answers to some");
  }
  receiver_.OnMessage(std::move(message));
}

void Input::OnOverlong(std::string_view beginning, uint64_t line_bytes) {
  receiver_.OnMessage(OverlongMessage(beginning, line_bytes));
}

}  // namespace bridge::epp
