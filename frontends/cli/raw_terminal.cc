// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/raw_terminal.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace bridge::cli {
namespace {

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

// What handlers of signals can reach.
std::atomic<const RawTerminal*> raw{nullptr};
std::atomic<int> window_fd{-1};

void OnFatal(int signal) {
  const RawTerminal* terminal = raw.load();
  if (terminal != nullptr) terminal->Restore();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void OnWindow(int) {
  const int error = errno;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(window_fd.load(), &one, sizeof one);
  errno = error;
}

void Handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RawTerminal>> RawTerminal::Enter(int fd) {
  termios before = {};
  if (tcgetattr(fd, &before) == 0) {
    std::unique_ptr<RawTerminal> terminal(new RawTerminal(fd, before));
    termios wanted = before;
    cfmakeraw(&wanted);
    // Keys that were typed ahead are not lost.
    if (tcsetattr(fd, TCSADRAIN, &wanted) == 0) {
      // As the kernel has taken it, which adds to it.
      if (tcgetattr(fd, &wanted) == 0) terminal->guardian_.emplace(fd, before, wanted);
      return terminal;
    }
  }
  return absl::UnknownError(fmt::format("the terminal cannot be changed: {}", strerror(errno)));
}

RawTerminal::RawTerminal(int fd, const termios& before) : fd_(fd), before_(before) {
  raw = this;
  for (const int number : kFatal) Handle(number, OnFatal);
}

RawTerminal::~RawTerminal() {
  Restore();
  for (const int number : kFatal) ::signal(number, SIG_DFL);
  raw = nullptr;
}

void RawTerminal::Restore() const { tcsetattr(fd_, TCSANOW, &before_); }

WindowSize WindowSizeOf(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80};
  return {size.ws_row, size.ws_col};
}

WindowWatch::WindowWatch() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  window_fd = fd_;
  Handle(SIGWINCH, OnWindow);
}

WindowWatch::~WindowWatch() {
  ::signal(SIGWINCH, SIG_DFL);
  window_fd = -1;
  close(fd_);
}

void WindowWatch::Take() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t ignored = read(fd_, &count, sizeof count);
}

}  // namespace bridge::cli
