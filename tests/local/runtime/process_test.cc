// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/time/clock.h"

namespace bridge::local::runtime {
namespace {

// A child that waits for a signal, and has a child of its own that does so too.
class Family {
 public:
  Family() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      if (fork() != 0) (void)!write(ends[1], "x", 1);
      while (true) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
  }
  ~Family() {
    for (const ProcessStat& stat : Descendants(child_)) kill(stat.pid, SIGKILL);
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  pid_t child() const { return child_; }

 private:
  pid_t child_ = 0;
};

TEST(Stat, NamesMayHoldAnything) {
  const auto stat = ParseProcessStat(
      "42 (a) b (c) S 7 42 42 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 987654 1000 0 184467");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->start_ticks, 987654u);
}

TEST(Stat, NonsenseIsNone) {
  for (const char* bad : {"", "42", "42 (x) S", "x (y) S 1 2 3"}) {
    EXPECT_FALSE(ParseProcessStat(bad).has_value()) << bad;
  }
}

TEST(Stat, ReadsThisProcess) {
  const auto stat = ReadProcess(getpid());
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent, getppid());
  EXPECT_GT(stat->start_ticks, 0u);
  EXPECT_FALSE(ReadProcess(1 << 22).has_value());
}

TEST(Tree, FindsChildrenOfChildren) {
  const Family family;
  const auto below = Descendants(family.child());
  ASSERT_EQ(below.size(), 1u);
  EXPECT_EQ(below[0].parent, family.child());
  const auto ours = Descendants(getpid());
  EXPECT_GE(ours.size(), 2u);
}

TEST(Handle, IsTiedToOneProcess) {
  const Family family;
  auto handle = ProcessHandle::Open(family.child());
  ASSERT_TRUE(handle.has_value());
  EXPECT_FALSE(handle->ended());
  EXPECT_FALSE(handle->WaitEnd(absl::Now() + absl::Milliseconds(10)));
  EXPECT_TRUE(ProcessHandle::Open(family.child(), handle->start_ticks()).has_value());
  EXPECT_FALSE(ProcessHandle::Open(family.child(), handle->start_ticks() + 1).has_value());
  const ProcessHandle moved = std::move(*handle);
  EXPECT_TRUE(moved.Signal(SIGKILL));
  EXPECT_TRUE(moved.WaitEnd(absl::Now() + absl::Seconds(10)));
  EXPECT_TRUE(moved.ended());
  EXPECT_TRUE(ProcessHandle().ended());
  EXPECT_FALSE(ProcessHandle().Signal(SIGTERM));
}

TEST(Stop, StopsAndContinuesThoseThatRan) {
  const Family family;
  const pid_t grandchild = Descendants(family.child())[0].pid;
  const auto state = [](pid_t pid) { return ReadProcess(pid)->state; };
  const auto reaches = [&](pid_t pid, char wanted) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (state(pid) != wanted && absl::Now() < deadline) usleep(100);
    return state(pid) == wanted;
  };
  const auto stopped = StopDescendants(family.child());
  EXPECT_EQ(stopped, std::vector<pid_t>{grandchild});
  EXPECT_TRUE(reaches(grandchild, 'T'));
  EXPECT_NE(state(family.child()), 'T') << "the root itself is left alone";
  EXPECT_TRUE(StopDescendants(family.child()).empty()) << "already stopped: not ours to continue";
  ContinueProcesses(stopped);
  EXPECT_TRUE(reaches(grandchild, 'S'));
}

TEST(Environment, KillsByExactEntry) {
  const pid_t child = fork();
  if (child == 0) {
    execle("/bin/sleep", "sleep", "1000", nullptr,
           (const char* const[]){"OTHER=1", "PROCESS_TEST_MARK=abc", nullptr});
    _exit(1);
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (ReadProcess(child)->state == 'R' && absl::Now() < deadline) usleep(1000);
  KillByEnvironment("PROCESS_TEST_MARK=ab");
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "a prefix is not the entry";
  KillByEnvironment("PROCESS_TEST_MARK=abc");
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace bridge::local::runtime
