// SPDX-License-Identifier: Apache-2.0
//
// What is told of processes that want to deceive, or that were killed together with what watches
// them, on a real daemon.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/process_client.h"
#include "bridge/opensandbox/process_script.h"
#include "bridge/opensandbox/process_state.h"
#include "tests/opensandbox/process_fixture.h"

namespace bridge {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::SizeIs;
using R = ErrorReason;
namespace fs = std::filesystem;

class ProcessTruth : public Processes {
 protected:
  std::vector<ProcessInfo> ListAll() {
    auto all = RunTask(bench.loop, [&] { return processes.List({}, {"box", ""}, true); });
    EXPECT_TRUE(all.ok()) << all.status();
    return all.ok() ? *all : std::vector<ProcessInfo>();
  }
  ProcessInfo Listed(const std::string& id) {
    for (ProcessInfo& info : ListAll()) {
      if (info.process_id == id) return info;
    }
    ADD_FAILURE() << "not listed";
    return {};
  }
  ProcessInfo Get(const std::string& id) {
    auto info = RunTask(bench.loop, [&] { return processes.Get({}, {"box", ""}, id); });
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? *info : ProcessInfo();
  }
  static pid_t ParentOf(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string word;
    pid_t parent = 0;
    while (status >> word && word != "PPid:") continue;
    status >> parent;
    return parent;
  }
  absl::Status Signal(const std::string& id, ProcessSignal signal) {
    return RunTask(bench.loop, [&] { return processes.Signal({}, {"box", ""}, id, signal); });
  }
};

INSTANTIATE_TEST_SUITE_P(Daemons, ProcessTruth, ::testing::Values("1.1.0", "current"),
                         [](const auto& info) {
                           return std::string(info.param) == "current" ? "current" : "v110";
                         });

// An empty argument is none the less one, and arguments make no process up.
TEST_P(ProcessTruth, ArgumentsAreListedAsTheyAre) {
  const std::vector<std::string> line = {
      "sh", "-c", "echo up; read x; :", "", "999999 1 1 R 0", "", "=999998 1 1 R 0\n6869\n", ""};
  const std::string id = Start({.argv = line});
  Attach(id, {.offset = 0}, "", "up");
  EXPECT_EQ(Listed(id).command_line, line);
  for (const ProcessInfo& info : ListAll()) EXPECT_LT(info.pid, 999998);
}

// A process may call itself as it likes.
TEST_P(ProcessTruth, NoNameHidesAProcess) {
  const fs::path odd = fs::path(::testing::TempDir()) / ("odd\n) R 1" + Nap());
  fs::create_symlink("/bin/sleep", odd);
  const std::string id = Start({.argv = {odd.string(), "7000"}});
  // The list may be made just before the program is there.
  const absl::Time until = absl::Now() + absl::Seconds(10);
  while (Listed(id).parent_pid == 0 && absl::Now() < until) std::this_thread::yield();
  EXPECT_GT(Listed(id).parent_pid, 1);
  const absl::Status sent = Signal(id, {SIGKILL, true});
  ASSERT_TRUE(sent.ok()) << sent;
  EXPECT_EQ(Attach(id, {.offset = 0}).outcome, Outcome(CancelledEnd{true, Signalled{9}}));
  fs::remove(odd);
}

// A process that has printed nothing and is killed with its whole group was taken for one that was
// never started, and attaching started it.
TEST_P(ProcessTruth, KilledWithWhatWatchesItItIsOver) {
  for (const bool terminal : {false, true}) {
    const fs::path runs = fs::path(::testing::TempDir()) / ("runs" + Nap());
    const std::string nap = Nap();
    ProcessSpec spec{.shell = "echo run >>" + runs.string() + "; sleep " + nap + "; :"};
    if (terminal) spec.terminal = TerminalSize{};
    const std::string id = Start(spec);
    while (Sleepers(nap).empty()) std::this_thread::yield();
    EXPECT_EQ(Get(id).state, ProcessState::kRunning);
    EXPECT_EQ(kill(-getpgid(Sleepers(nap)[0]), SIGKILL), 0);
    ASSERT_TRUE(AllGone(nap));
    const absl::Time until = absl::Now() + absl::Seconds(10);
    while (Get(id).state != ProcessState::kExited && absl::Now() < until) std::this_thread::yield();
    EXPECT_EQ(Get(id).state, ProcessState::kExited);
    EXPECT_EQ(Listed(id).state, ProcessState::kExited);
    EXPECT_EQ(ReasonOf(Signal(id, {SIGTERM, false})), R::ERROR_REASON_PROCESS_NOT_FOUND);
    const Seen seen = Attach(id, {.offset = 0});
    ASSERT_TRUE(seen.outcome.has_value()) << seen.status;
    EXPECT_TRUE(std::holds_alternative<Lost>(*seen.outcome));
    EXPECT_FALSE(seen.attached.running);
    std::ifstream file(runs);
    const std::vector<std::string> lines{std::istream_iterator<std::string>(file), {}};
    EXPECT_THAT(lines, SizeIs(1));
  }
}

// A list said of every process that did not run that it had ended, and of every other one that it
// ran; and nobody but an attachment told how one had ended.
TEST_P(ProcessTruth, StatesAndEndsAreTheSameEverywhere) {
  const auto check = [this](const std::string& id, ProcessState state) {
    const absl::Time until = absl::Now() + absl::Seconds(10);
    while (Get(id).state != state && absl::Now() < until) std::this_thread::yield();
    const ProcessInfo got = Get(id);
    EXPECT_EQ(got.state, state);
    EXPECT_TRUE(got.output_offset.has_value());
    const auto own = RunTask(bench.loop, [&] { return processes.List({}, {"box", ""}, false); });
    EXPECT_TRUE(own.ok()) << own.status();
    EXPECT_THAT(*own, SizeIs(1));
    EXPECT_FALSE(own->front().output_offset.has_value());
    for (const ProcessInfo& info : {own->front(), Listed(id)}) {
      EXPECT_EQ(info.state, state);
      EXPECT_EQ(info.outcome, got.outcome);
      EXPECT_EQ(info.pid, got.pid);
    }
    EXPECT_TRUE(*RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); }));
    return got.outcome;
  };
  EXPECT_EQ(check(Start({.shell = ":"}, true), ProcessState::kPending), std::nullopt);
  EXPECT_EQ(check(Start({.shell = "kill -STOP $$"}), ProcessState::kStopped), std::nullopt);
  EXPECT_EQ(check(Start({.argv = {"sleep", Nap()}}), ProcessState::kRunning), std::nullopt);
  EXPECT_EQ(check(Start({.shell = "echo x; exit 3"}), ProcessState::kExited), Outcome(ExitCode{3}));
  EXPECT_EQ(check(Start({.shell = "kill $$", .terminal = TerminalSize{}}), ProcessState::kExited),
            Outcome(Signalled{15}));
  const auto end = check(Start({.argv = {"no-such-program"}}), ProcessState::kExited);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(std::holds_alternative<SpawnFailed>(*end));
}

// Whether a caller sent the signal: it was somebody's in either case.
TEST_P(ProcessTruth, WhoSentTheSignalIsKnown) {
  const Outcome cancelled = CancelledEnd{true, Signalled{15}};
  const std::string nap = Nap();
  const std::string id = Start({.shell = "sleep " + nap + "; :"});
  while (Sleepers(nap).empty()) std::this_thread::yield();
  EXPECT_TRUE(Signal(id, {SIGTERM, true}).ok());
  EXPECT_EQ(Attach(id, {.offset = 0}).outcome, cancelled);
  EXPECT_EQ(Get(id).outcome, cancelled);
  // Of an earlier run it tells nothing.
  const Seen again = RunTask(bench.loop, [&]() -> Task<Seen> {
    Seen seen;
    const AttachOptions options{.restart_if_exited = true};
    auto attachment = co_await processes.Attach(bench.context, bench.box, id, options);
    seen.status = attachment.status();
    if (!attachment.ok()) co_return seen;
    std::thread killer([&nap] {
      while (Sleepers(nap).empty()) std::this_thread::yield();
      const pid_t shell = ParentOf(Sleepers(nap)[0]);
      kill(shell, SIGTERM);
    });
    while (!seen.drained && seen.status.ok()) {
      auto event = co_await (*attachment)->Next();
      seen.status = event.status();
      if (event.ok()) Take(*event, &seen);
    }
    killer.join();
    co_return seen;
  });
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(again.outcome, Outcome(Signalled{15}));
}

TEST_P(ProcessTruth, WhoHoldsADeletedProcessIsTold) {
  for (const bool terminal : {false, true}) {
    ProcessSpec spec{.shell = "echo up; exec sleep " + Nap()};
    if (terminal) spec.terminal = TerminalSize{};
    const std::string id = Start(spec);
    const Seen seen = RunTask(bench.loop, [&]() -> Task<Seen> {
      Seen held;
      const AttachOptions options{.offset = 0};
      auto attachment = co_await processes.Attach(bench.context, bench.box, id, options);
      held.status = attachment.status();
      if (!attachment.ok()) co_return held;
      const auto deleted = co_await processes.Delete(bench.context, bench.box, id);
      EXPECT_TRUE(deleted.ok() && *deleted);
      while (!held.drained && held.status.ok()) {
        auto event = co_await (*attachment)->Next();
        held.status = event.status();
        if (event.ok()) Take(*event, &held);
      }
      co_return held;
    });
    EXPECT_TRUE(seen.status.ok()) << seen.status;
    ASSERT_TRUE(seen.outcome.has_value());
    EXPECT_TRUE(std::holds_alternative<CancelledEnd>(*seen.outcome)) << seen.outcome->index();
  }
}

// `drained` is not the last word on what others print that the process left behind.
TEST_P(ProcessTruth, WhatOthersPrintAfterTheEndIsKept) {
  const fs::path go = fs::path(execd.tmpdir()) / "go";
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  const std::string id =
      Start({.shell = "(read x <" + go.string() + "; echo late)& echo main; exit 4"});
  const Seen end = Attach(id, {.offset = 0});
  EXPECT_EQ(end.merged, "main\n");
  EXPECT_EQ(end.outcome, Outcome(ExitCode{4}));
  std::ofstream(go) << "\n";
  Seen later;
  const absl::Time until = absl::Now() + absl::Seconds(10);
  while (later.merged.empty() && absl::Now() < until) later = Attach(id, {.offset = end.next});
  EXPECT_EQ(later.merged, "late\n");
  EXPECT_EQ(later.outcome, Outcome(ExitCode{4}));
}

// A daemon that was started anew knows none of its processes, but their folders are still there.
TEST_P(ProcessTruth, WhatTheDaemonForgotIsNotListed) {
  const fs::path folder = fs::path(ProcessFolder(execd.tmpdir(), std::string(32, 'f')));
  fs::create_directory(folder);
  std::ofstream(folder / "id") << "p.none." << std::string(32, 'f') << "\n";
  std::ofstream(folder / "s") << "999999999 1\n";
  std::ofstream(folder / "n") << "000001 e 000\n";
  EXPECT_THAT(ListAll(), Each(Field(&ProcessInfo::process_id, "")));
}

// ---- What the scripts make of a folder

class ProcessFolderTest : public ::testing::Test {
 protected:
  ProcessFolderTest() { fs::create_directory(folder_); }
  ~ProcessFolderTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  static std::string Run(const std::string& script, int* status = nullptr) {
    const fs::path file = fs::path(::testing::TempDir()) / ("script" + Nap());
    std::ofstream(file) << script;
    FILE* out = popen(("sh " + file.string()).c_str(), "r");
    std::string text;
    char buffer[256];
    while (fgets(buffer, sizeof buffer, out) != nullptr) text += buffer;
    const int ended = pclose(out);
    if (status != nullptr) *status = WEXITSTATUS(ended);
    return text;
  }
  static std::string StartOf(pid_t pid) {
    // This test's own name has no space.
    return Run("set -- $(cat /proc/" + std::to_string(pid) + "/stat); echo ${22}");
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / ("folder" + Nap());
};

// The end is told before it is written down, and may be asked about in between.
TEST_F(ProcessFolderTest, OneMoreRunIsAskedForUntilItHasBegun) {
  ASSERT_EQ(mkfifo((folder_ / "c").c_str(), 0600), 0);
  const int pipe = open((folder_ / "c").c_str(), O_RDWR | O_NONBLOCK);
  int status = -1;
  std::thread asking([&] { Run(RestartScript(folder_.string(), 1), &status); });
  pollfd line{pipe, POLLIN, 0};
  EXPECT_EQ(poll(&line, 1, 10'000), 1);
  char text[8] = {};
  EXPECT_EQ(read(pipe, text, sizeof(text)), 3);
  EXPECT_STREQ(text, "r1\n");
  Write("n", "000001 e 000\n");
  Write("n", "000002 r 000\n");
  asking.join();
  EXPECT_EQ(status, 0);
  close(pipe);
}

// A pid that somebody else has by now is nobody to be listed or signalled.
TEST_F(ProcessFolderTest, APidIsKnownByItsBirth) {
  const std::string self = std::to_string(getpid());
  Write("id", "p.x.y\n");
  Write("s", "1\n");
  Write("p", self + " " + StartOf(getpid()));
  Write("n", "000001 e 007\n");
  const std::string script = RecordScript(folder_.string());
  const auto record = ParseProcessRecord(Run(script));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->process_id, "p.x.y");
  EXPECT_EQ(record->pid, getpid());
  EXPECT_TRUE(record->started);
  EXPECT_EQ(record->marks.count, 1);
  EXPECT_EQ(record->marks.ended, Outcome(ExitCode{7}));
  int status = -1;
  Run(SignalProcessScript(folder_.string(), 0, false), &status);
  EXPECT_EQ(status, 0);
  for (const std::string& other : {self + " 12345\n", std::string("999999999 1\n"),
                                   std::string("1 1\n"), std::string("\n"), std::string("x y\n")}) {
    Write("p", other);
    EXPECT_EQ(ParseProcessRecord(Run(script)).value_or(ProcessRecord{.pid = 7}).pid, 0) << other;
    for (const bool group : {false, true}) {
      Run(SignalProcessScript(folder_.string(), 0, group), &status);
      EXPECT_EQ(status, 3) << other;
    }
  }
}

}  // namespace
}  // namespace bridge
