// SPDX-License-Identifier: Apache-2.0
//
// With the built sbx: tests/integration/programs/shell_test.py.
#include "frontends/cli/terminal_guardian.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace bridge::cli {
namespace {

constexpr int kPatienceMs = 20'000;

termios Settings(int fd) {
  termios settings = {};
  EXPECT_EQ(tcgetattr(fd, &settings), 0);
  return settings;
}

bool IsRaw(int fd) { return (Settings(fd).c_lflag & ICANON) == 0; }

std::string NameOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

// A program that has made its terminal raw, has a guardian and a pipe to us, and never ends.
class TerminalGuardianTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(openpty(&master_, &slave_, nullptr, nullptr, nullptr), 0);
    std::array<int, 2> told = {}, held = {};
    ASSERT_EQ(pipe2(told.data(), O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(held.data(), O_CLOEXEC), 0);
    program_ = fork();
    if (program_ == 0) BeProgram(told[1]);
    close(told[1]);
    close(held[1]);
    held_ = held[0];
    ASSERT_EQ(read(told[0], &guardian_, sizeof guardian_), ssize_t{sizeof guardian_});
    close(told[0]);
    ASSERT_GT(guardian_, 0);
    guardian_fd_ = static_cast<int>(syscall(SYS_pidfd_open, guardian_, 0));
    ASSERT_GE(guardian_fd_, 0);
    ASSERT_TRUE(IsRaw(slave_));
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (NameOf(guardian_) != "tty-guardian") {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      std::this_thread::yield();
    }
  }

  [[noreturn]] void BeProgram(int tell) const {
    setpgid(0, 0);
    const termios before = Settings(slave_);
    termios raw = before;
    cfmakeraw(&raw);
    tcsetattr(slave_, TCSANOW, &raw);
    const TerminalGuardian guardian(slave_, before, Settings(slave_));
    const pid_t pid = guardian.pid();
    if (write(tell, &pid, sizeof pid) < 0) _exit(1);
    for (;;) pause();
  }

  void TearDown() override {
    Kill();
    for (const int fd : {master_, slave_, held_, guardian_fd_}) {
      if (fd >= 0) close(fd);
    }
  }

  // With all of its group, as a shell's `kill -9 %1` does.
  void Kill() {
    if (program_ <= 0) return;
    kill(-program_, SIGKILL);
    waitpid(program_, nullptr, 0);
    program_ = -1;
  }

  bool GuardianEnds() const {
    pollfd wanted = {guardian_fd_, POLLIN, 0};
    return poll(&wanted, 1, kPatienceMs) == 1;
  }

  pid_t program_ = -1;
  pid_t guardian_ = -1;
  int guardian_fd_ = -1;
  int master_ = -1, slave_ = -1;
  int held_ = -1;  // its other end is open in the program
};

TEST_F(TerminalGuardianTest, RestoresWhatAKilledProgramLeft) {
  Kill();
  ASSERT_TRUE(GuardianEnds());
  EXPECT_FALSE(IsRaw(slave_));
}

TEST_F(TerminalGuardianTest, LeavesWhatSomebodyElseHasSetSince) {
  kill(guardian_, SIGSTOP);
  Kill();
  termios theirs = Settings(slave_);
  theirs.c_lflag |= ISIG;
  ASSERT_EQ(tcsetattr(slave_, TCSANOW, &theirs), 0);
  kill(guardian_, SIGCONT);
  ASSERT_TRUE(GuardianEnds());
  EXPECT_TRUE(IsRaw(slave_));
  EXPECT_NE(Settings(slave_).c_lflag & ISIG, 0u);
}

TEST_F(TerminalGuardianTest, KeepsNothingOfTheProgramOpen) {
  kill(guardian_, SIGSTOP);
  Kill();
  pollfd wanted = {held_, POLLIN, 0};
  ASSERT_EQ(poll(&wanted, 1, kPatienceMs), 1);  // the end of it, which the guardian would keep away
  EXPECT_NE(wanted.revents & POLLHUP, 0);
  kill(guardian_, SIGCONT);
  EXPECT_TRUE(GuardianEnds());
}

TEST_F(TerminalGuardianTest, EndsAlsoWithoutTheTerminal) {
  close(std::exchange(slave_, -1));
  close(std::exchange(master_, -1));
  Kill();
  EXPECT_TRUE(GuardianEnds());
}

TEST(TerminalGuardian, IsGoneAfterItsEndAndHasTouchedNothing) {
  int master = -1, slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const termios before = Settings(slave);
  termios raw = before;
  cfmakeraw(&raw);
  ASSERT_EQ(tcsetattr(slave, TCSANOW, &raw), 0);
  {
    const TerminalGuardian guardian(slave, before, Settings(slave));
    EXPECT_GT(guardian.pid(), 0);
  }
  EXPECT_TRUE(IsRaw(slave));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child, dead or alive
  EXPECT_EQ(errno, ECHILD);
  close(master);
  close(slave);
}

}  // namespace
}  // namespace bridge::cli
