// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/streams.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string>

namespace bridge::cli {
namespace {

// A writable pipe or terminal takes PIPE_BUF bytes without blocking (pipe(7)); more might wait for
// the reader inside write(2), where nothing can reach us. Files never wait.
size_t SafePiece(int fd) {
  struct stat info = {};
  const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? size_t{1} << 20 : PIPE_BUF;
}

absl::Status WriteError(int error) {
  if (error == EPIPE) return absl::AbortedError("the reader of the output is gone");
  return absl::UnknownError(fmt::format("cannot write output: {}", std::strerror(error)));
}

}  // namespace

Streams::Streams(int in, int out, int err)
    : in_(in), out_(out), err_(err), abandon_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Streams::~Streams() { close(abandon_fd_); }

absl::Status Streams::Write(int fd, std::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  const size_t piece = SafePiece(fd);
  while (!bytes.empty()) {
    pollfd wanted[] = {{fd, POLLOUT, 0}, {abandon_fd_, POLLIN, 0}};
    if (poll(wanted, 2, -1) < 0 && errno != EINTR) return WriteError(errno);
    if (abandoned_) return absl::CancelledError("output was abandoned");
    if (wanted[0].revents == 0) continue;
    const ssize_t written = write(fd, bytes.data(), std::min(bytes.size(), piece));
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      return WriteError(errno);
    }
  }
  return absl::OkStatus();
}

void Streams::Note(std::string_view line) { Say(fmt::format("sbx: {}\n", line)); }

void Streams::Say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(err_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void Streams::Abandon() {
  abandoned_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(abandon_fd_, &one, sizeof one);
}

bool Streams::WritesTo(const struct stat& file) const {
  for (const int fd : {out_, err_}) {
    struct stat own = {};
    if (fstat(fd, &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino) return true;
  }
  return false;
}

bool Streams::in_is_terminal() const { return isatty(in_) == 1; }
bool Streams::out_is_terminal() const { return isatty(out_) == 1; }
bool Streams::err_is_terminal() const { return isatty(err_) == 1; }

}  // namespace bridge::cli
