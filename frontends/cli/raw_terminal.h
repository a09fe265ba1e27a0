// SPDX-License-Identifier: Apache-2.0
//
// cli/raw_terminal.h — the person's terminal while a remote one is shown on it: every key goes to
// the other side. It is put back on destruction, when sbx crashes, and when it is killed.
#pragma once

#include <termios.h>

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "frontends/cli/terminal_guardian.h"

namespace bridge::cli {

// One at a time in a program. Main thread, but for Restore().
class RawTerminal {
 public:
  // `fd` is a terminal. Unknown: it cannot be changed.
  static absl::StatusOr<std::unique_ptr<RawTerminal>> Enter(int fd);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  // As it was. Any thread, also within a signal handler; more than once does no harm.
  void Restore() const;

 private:
  RawTerminal(int fd, const termios& before);

  const int fd_;
  const termios before_;
  std::optional<TerminalGuardian> guardian_;
};

struct WindowSize {
  unsigned rows = 0;
  unsigned columns = 0;
};
// 24 × 80 where the terminal does not say.
WindowSize WindowSizeOf(int fd);

// Tells when the window's size may have changed, by SIGWINCH. One at a time in a program.
class WindowWatch {
 public:
  WindowWatch();
  ~WindowWatch();
  WindowWatch(const WindowWatch&) = delete;
  WindowWatch& operator=(const WindowWatch&) = delete;

  // Readable after a change, until Take().
  int fd() const { return fd_; }
  void Take() const;

 private:
  const int fd_;
};

}  // namespace bridge::cli
