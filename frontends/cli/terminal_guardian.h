// SPDX-License-Identifier: Apache-2.0
//
// cli/terminal_guardian.h — puts the terminal back when sbx ends in a way that nobody can handle
// (SIGKILL, the kernel short of memory): a forked child that waits for the end of a pipe whose
// other end dies with sbx. It runs no program and keeps nothing of sbx open but the terminal.
#pragma once

#include <sys/types.h>
#include <termios.h>

namespace bridge::cli {

class TerminalGuardian {
 public:
  // Should this process end while the guardian lives, the terminal `fd` becomes as `before`, but
  // only if it is still as `changed`: who has set it since (a shell that has its prompt back) knows
  // better. Where no process can be had the terminal is unguarded, and all else works.
  TerminalGuardian(int fd, const termios& before, const termios& changed);
  // Ends the guardian, which then touches nothing.
  ~TerminalGuardian();
  TerminalGuardian(const TerminalGuardian&) = delete;
  TerminalGuardian& operator=(const TerminalGuardian&) = delete;

  pid_t pid() const { return pid_; }  // -1: there is none

 private:
  pid_t pid_ = -1;
  int alive_fd_ = -1;  // nothing is ever written to it
};

}  // namespace bridge::cli
