// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/local/execd/proc_tree.h"

namespace bridge::local::execd {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);

SpawnSpec Shell(const std::string& text) {
  SpawnSpec spec;
  spec.program = "/bin/sh";
  spec.argv = {"sh", "-c", text};
  spec.env = {"PATH=/usr/bin:/bin"};
  return spec;
}

// Runs a shell text and returns what it printed.
std::string OutputOf(Processes& processes, SpawnSpec spec, int* status = nullptr) {
  int fds[2];
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  spec.stdout_fd = spec.stderr_fd = fds[1];
  const auto result = processes.Spawn(spec);
  close(fds[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = read(fds[0], buffer, sizeof(buffer))) > 0;) out.append(buffer, n);
  close(fds[0]);
  if (result.process) {
    const auto end = result.process->Wait(kLong);
    if (status != nullptr) *status = end.value_or(-1);
  }
  return out;
}

TEST(Processes, ReportsExitAndSignal) {
  Processes processes;
  int status = 0;
  EXPECT_EQ(OutputOf(processes, Shell("echo hi; exit 3"), &status), "hi\n");
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  OutputOf(processes, Shell("kill -9 $$"), &status);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(Processes, SpawnFailures) {
  Processes processes;
  SpawnSpec spec = Shell("true");
  spec.program = "/no/such/program";
  EXPECT_EQ(processes.Spawn(spec).error, ENOENT);
  spec = Shell("true");
  spec.env.push_back("BIG=" + std::string(200'000, 'x'));
  EXPECT_EQ(processes.Spawn(spec).error, E2BIG);
  spec = Shell("true");
  spec.cwd = "/no/such/directory";
  const auto result = processes.Spawn(spec);
  EXPECT_EQ(result.error, ENOENT);
  EXPECT_EQ(result.step, Processes::SpawnResult::Step::kDirectory);
  EXPECT_EQ(result.process, nullptr);
}

TEST(Processes, ChildrenStartClean) {
  signal(SIGPIPE, SIG_IGN);
  Processes processes;
  EXPECT_EQ(OutputOf(processes, Shell("grep -E 'Sig(Ign|Blk)' /proc/self/status")),
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  SpawnSpec spec = Shell("grep SigIgn /proc/self/status");
  spec.ignore_sigint = true;
  EXPECT_EQ(OutputOf(processes, spec), "SigIgn:\t0000000000000002\n");
  // Nothing of ours is open there, and stdin is empty.
  EXPECT_EQ(OutputOf(processes, Shell("ls /proc/self/fd; cat; readlink /proc/self/fd/0")),
            "0\n1\n2\n3\n/dev/null\n");  // 3 is the listed directory
}

// Of a program and this daemon, when memory is short, the kernel ends the program.
TEST(Processes, TheKernelTakesAChildBeforeThisProgram) {
  int own = 0;
  std::ifstream("/proc/self/oom_score_adj") >> own;
  Processes processes;
  const std::string wanted = std::to_string(std::min(own + 300, 1000)) + "\n";
  SpawnSpec spec = Shell("cat /proc/self/oom_score_adj");
  EXPECT_EQ(OutputOf(processes, spec), wanted);
  if (geteuid() == 0) {
    spec.identity = Identity{65534, 65534, {}};
    EXPECT_EQ(OutputOf(processes, spec), wanted);
  }
  int after = -1;
  std::ifstream("/proc/self/oom_score_adj") >> after;
  EXPECT_EQ(after, own);
}

TEST(Processes, OwnGroupAndIdentity) {
  Processes processes;
  const auto process = processes.Spawn(Shell("sleep 100")).process;
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(getpgid(process->pid()), process->pid());
  EXPECT_TRUE(process->SignalGroup(SIGTERM));
  EXPECT_EQ(process->Wait(kLong), SIGTERM);
  EXPECT_FALSE(process->SignalGroup(SIGTERM));
  EXPECT_FALSE(process->Signal(0));

  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  SpawnSpec spec = Shell("id -u; id -g; id -G");
  spec.identity = Identity{1234, 2345, {3456}};
  EXPECT_EQ(OutputOf(processes, spec), "1234\n2345\n2345 3456\n");
}

TEST(Processes, WaitTimesOut) {
  Processes processes;
  const auto process = processes.Spawn(Shell("sleep 100")).process;
  EXPECT_EQ(process->Wait(absl::Milliseconds(1)), std::nullopt);
  EXPECT_EQ(process->status(), std::nullopt);
}

// Each caller is woken once, however many wait: a daemon that has fallen behind catches up.
TEST(Processes, ManyCallersAtOnce) {
  constexpr int kCallers = 300;
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  {
    Processes processes;
    std::vector<std::thread> callers;
    callers.reserve(kCallers);
    std::atomic<int> well{0};
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&] {
        const auto process = processes.Spawn(Shell("exit 3")).process;
        const auto status = process->Wait(kLong);
        if (status && WIFEXITED(*status) && WEXITSTATUS(*status) == 3) ++well;
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(well, kCallers);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 25 * kCallers);
}

TEST(Processes, ACancelledOneIsNotStarted) {
  Processes processes;
  std::atomic<bool> cancelled = false;
  SpawnSpec spec = Shell("exit 3");
  spec.cancelled = &cancelled;
  EXPECT_NE(processes.Spawn(spec).process, nullptr);
  cancelled = true;
  const auto result = processes.Spawn(spec);
  EXPECT_EQ(result.process, nullptr);
  EXPECT_EQ(result.error, ECANCELED);
}

TEST(Processes, OnExitRunsBeforeWaitersSeeTheEnd) {
  Processes processes;
  std::atomic<int> seen{0};
  const auto process = processes.Spawn(Shell("sleep 0.05; exit 7")).process;
  process->OnExit([&](int status) {
    absl::SleepFor(absl::Milliseconds(20));
    seen = WEXITSTATUS(status);
  });
  ASSERT_TRUE(process->Wait(kLong).has_value());
  EXPECT_EQ(seen, 7);
}

TEST(Processes, OnExitAfterTheEndRunsAtOnce) {
  Processes processes;
  const auto process = processes.Spawn(Shell("exit 5")).process;
  ASSERT_TRUE(process->Wait(kLong).has_value());
  int seen = 0;
  process->OnExit([&](int status) { seen = WEXITSTATUS(status); });
  EXPECT_EQ(seen, 5);
}

TEST(Processes, ManyAtOnce) {
  Processes processes;
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto process = processes.Spawn(Shell("exit " + std::to_string(t))).process;
        if (process && process->Wait(kLong) == t << 8) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 80);
}

TEST(Processes, NothingIsLeftBehind) {
  {
    Processes processes;
    // A group, a session of its own, and an orphan.
    ASSERT_NE(processes.Spawn(Shell("sleep 1000 & sleep 1000")).process, nullptr);
    ASSERT_NE(processes.Spawn(Shell("setsid sleep 1000")).process, nullptr);
    while (DescendantsOf(getpid()).size() < 4) absl::SleepFor(absl::Milliseconds(1));
    processes.KillAll(kLong);
    EXPECT_EQ(processes.Spawn(Shell("true")).process, nullptr);
  }
  EXPECT_TRUE(DescendantsOf(getpid()).empty());
}

// The kernel kills the children when the program that made them is killed.
TEST(Processes, ChildrenDieWithTheProgram) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const pid_t program = fork();
  if (program == 0) {
    Processes processes;
    const auto process = processes.Spawn(Shell("exec sleep 1000")).process;
    const pid_t pid = process->pid();
    (void)!write(fds[1], &pid, sizeof(pid));
    pause();
  }
  pid_t child = 0;
  ASSERT_EQ(read(fds[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  close(fds[0]);
  close(fds[1]);
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  const absl::Time deadline = absl::Now() + kLong;
  const auto gone = [&] {
    const auto stat = ReadProcStat(child);
    return !stat || stat->state == 'Z' || stat->comm != "sleep";
  };
  while (!gone() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(gone());
}

TEST(ProcTree, ParsesAwkwardNames) {
  const auto stat = ParseProcStat(
      "42 (a) b (c) S 1 42 41 0 -1 4194304 1 0 0 0 7 5 0 0 20 0 3 0 81234 9000 256 0\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->comm, "a) b (c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->ppid, 1);
  EXPECT_EQ(stat->pgid, 42);
  EXPECT_EQ(stat->sid, 41);
  EXPECT_EQ(stat->cpu_ticks, 12);
  EXPECT_EQ(stat->threads, 3);
  EXPECT_EQ(stat->start_ticks, 81234);
  EXPECT_EQ(stat->rss_pages, 256);
  EXPECT_FALSE(ParseProcStat("").has_value());
  EXPECT_FALSE(ParseProcStat("42 (x) S 1").has_value());
}

TEST(ProcTree, SeesThisProcess) {
  const auto stat = ReadProcStat(getpid());
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->ppid, getppid());
  EXPECT_FALSE(ReadProcStat(0x7ffffffe).has_value());
}

}  // namespace
}  // namespace bridge::local::execd
