// SPDX-License-Identifier: Apache-2.0
#include "tests/frontends/cli/terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "bridge/base/c_strings.h"

namespace bridge::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(20);

int MillisecondsUntil(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return left.count() < 0 ? 0 : static_cast<int>(left.count());
}

}  // namespace

Terminal::Terminal(const std::string& program, const std::vector<std::string>& args,
                   const std::string& address) {
  // Everything is made before the fork: after it only exec is safe, since gRPC has threads here.
  std::vector<std::string> words = {program};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<std::string> variables = {"SANDBOX_BRIDGE_ADDRESS=" + address, "TERM=xterm",
                                        "PATH=/usr/bin:/bin"};
  const std::vector<char*> argv = CStrings(words);
  const std::vector<char*> envp = CStrings(variables);
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = 80;
  pid_ = forkpty(&master_, nullptr, nullptr, &size);
  if (pid_ == 0) {
    // Whoever runs the tests may have ignored them.
    for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    execve(argv[0], argv.data(), envp.data());
    _exit(99);
  }
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  HangUp();
}

void Terminal::Type(const std::string& keys) {
  size_t sent = 0;
  while (sent < keys.size()) {
    const ssize_t count = write(master_, keys.data() + sent, keys.size() - sent);
    if (count <= 0) return;
    sent += static_cast<size_t>(count);
  }
}

bool Terminal::ReadSome() {
  std::array<char, 4096> buffer;
  const ssize_t count = read(master_, buffer.data(), buffer.size());
  if (count <= 0) return false;  // EIO: nobody has the other side any more
  screen_.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

std::string Terminal::ReadUntil(const std::string& text) {
  const auto end = Clock::now() + kPatience;
  while (screen_.find(text) == std::string::npos) {
    pollfd wanted = {master_, POLLIN, 0};
    if (poll(&wanted, 1, MillisecondsUntil(end)) <= 0 || !ReadSome()) break;
  }
  return screen_;
}

void Terminal::Signal(int signal) { kill(pid_, signal); }

void Terminal::Resize(unsigned short rows, unsigned short columns) {
  winsize size = {};
  size.ws_row = rows;
  size.ws_col = columns;
  ioctl(master_, TIOCSWINSZ, &size);
}

void Terminal::HangUp() {
  if (master_ >= 0) close(master_);
  master_ = -1;
}

int Terminal::Wait() {
  // What is still printed must be taken, or the program could not end.
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  const auto end = Clock::now() + kPatience;
  bool open = master_ >= 0;
  for (;;) {
    pollfd wanted[] = {{process, POLLIN, 0}, {open ? master_ : -1, POLLIN, 0}};
    if (poll(wanted, 2, MillisecondsUntil(end)) <= 0) break;
    if (wanted[1].revents != 0) open = ReadSome();
    if (wanted[0].revents == 0 || (open && wanted[1].revents != 0)) continue;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    close(process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  close(process);
  return -1;
}

std::string SbxBinary() {
  const char* root = std::getenv("TEST_SRCDIR");
  return std::string(root == nullptr ? "." : root) + "/sandbox_bridge/frontends/cli/sbx";
}

}  // namespace bridge::cli
