// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/terminal_guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace bridge::cli {
namespace {

bool IsSame(const termios& a, const termios& b) {
  return a.c_iflag == b.c_iflag && a.c_oflag == b.c_oflag && a.c_cflag == b.c_cflag &&
         a.c_lflag == b.c_lflag && std::equal(std::begin(a.c_cc), std::end(a.c_cc), b.c_cc);
}

// The child. Other threads of sbx may have held locks when it was forked: system calls only.
[[noreturn]] void Guard(int terminal, int end_of_sbx, const termios& before,
                        const termios& changed) {
  // A session of its own: what is sent to sbx's group or by the terminal ends sbx and not this, and
  // who has no controlling terminal may change one from the background.
  setsid();
  // Connections, files and pipes of sbx must end with sbx. Also our copy of the pipe's other end.
  const int kept[] = {std::min(terminal, end_of_sbx), std::max(terminal, end_of_sbx)};
  unsigned first = 0;
  for (const int fd : kept) {
    if (static_cast<unsigned>(fd) > first) {
      syscall(SYS_close_range, first, static_cast<unsigned>(fd) - 1, 0);
    }
    first = static_cast<unsigned>(fd) + 1;
  }
  syscall(SYS_close_range, first, ~0U, 0);
  // What kills every program called sbx is to leave it. Last: it says that all this was done.
  prctl(PR_SET_NAME, "tty-guardian", 0, 0, 0);
  char nothing = 0;
  while (read(end_of_sbx, &nothing, 1) < 0 && errno == EINTR) {
  }
  termios now = {};
  if (tcgetattr(terminal, &now) == 0 && IsSame(now, changed)) {
    tcsetattr(terminal, TCSANOW, &before);
  }
  _exit(0);
}

}  // namespace

TerminalGuardian::TerminalGuardian(int fd, const termios& before, const termios& changed) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[1]);  // also where there is no close_range(2)
    Guard(fd, ends[0], before, changed);
  }
  close(ends[0]);
  alive_fd_ = ends[1];
}

TerminalGuardian::~TerminalGuardian() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (alive_fd_ >= 0) close(alive_fd_);
}

}  // namespace bridge::cli
