// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/input.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "bridge/base/standard_streams.h"

namespace bridge::cli {
namespace {

enum class Kind { kTerminal, kFile, kPipe, kClosed };

Kind KindOf(int fd) {
  struct stat info = {};
  if (IsClosed(fd) || fstat(fd, &info) != 0) return Kind::kClosed;
  if (isatty(fd) == 1) return Kind::kTerminal;
  // A character device that is no terminal (/dev/null, /dev/zero) never makes a reader wait.
  return S_ISREG(info.st_mode) || S_ISCHR(info.st_mode) ? Kind::kFile : Kind::kPipe;
}

// True when something (or the end) can be read within `patience`.
absl::StatusOr<bool> WaitReadable(int fd, absl::Duration patience, int abandon_fd) {
  const absl::Time until = absl::Now() + patience;
  for (;;) {
    pollfd wanted[] = {{fd, POLLIN, 0}, {abandon_fd, POLLIN, 0}};
    int wait_ms = -1;
    if (patience < absl::InfiniteDuration()) {
      wait_ms = static_cast<int>(
          absl::ToInt64Milliseconds(absl::Ceil(until - absl::Now(), absl::Milliseconds(1))));
      if (wait_ms < 0) wait_ms = 0;
    }
    const int ready = poll(wanted, 2, wait_ms);
    if (wanted[1].revents != 0) return absl::CancelledError("interrupted while reading input");
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) {
      return absl::UnknownError(fmt::format("cannot read stdin: {}", std::strerror(errno)));
    }
  }
}

absl::StatusOr<std::string> ReadToEnd(int fd, int abandon_fd) {
  std::string bytes;
  std::array<char, size_t{64} << 10> buffer;
  for (;;) {
    const absl::StatusOr<bool> readable = WaitReadable(fd, absl::InfiniteDuration(), abandon_fd);
    if (!readable.ok()) return readable.status();
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count == 0) return bytes;
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) {
      return absl::UnknownError(fmt::format("cannot read stdin: {}", std::strerror(errno)));
    }
    bytes.append(buffer.data(), static_cast<size_t>(count));
    if (bytes.size() > kMaxInputBytes) {
      return absl::ResourceExhaustedError(fmt::format(
          "stdin is larger than the {} MiB that travel with a command", kMaxInputBytes >> 20));
    }
  }
}

}  // namespace

absl::StatusOr<Input> GatherInput(int fd, InputMode mode, absl::Duration grace, int abandon_fd) {
  const Kind kind = KindOf(fd);
  if (mode == InputMode::kNone || kind == Kind::kClosed) return Input{};
  if (mode == InputMode::kAuto && kind == Kind::kTerminal) return Input{};
  if (mode == InputMode::kAuto && kind == Kind::kPipe) {
    const absl::StatusOr<bool> spoke = WaitReadable(fd, grace, abandon_fd);
    if (!spoke.ok()) return spoke.status();
    if (!*spoke) return Input{.bytes = "", .left_open = true};
  }
  absl::StatusOr<std::string> bytes = ReadToEnd(fd, abandon_fd);
  if (!bytes.ok()) return bytes.status();
  return Input{.bytes = *std::move(bytes)};
}

bool InputCameLate(int fd) {
  int waiting = 0;
  return ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0;
}

}  // namespace bridge::cli
