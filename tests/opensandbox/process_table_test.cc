// SPDX-License-Identifier: Apache-2.0
//
// Every process of a sandbox, and signals to any of them, on real daemons of every kind.
#include "bridge/opensandbox/process_table.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/process_client.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"
#include "tests/opensandbox/process_fixture.h"

namespace bridge {
namespace {

using R = ErrorReason;
using ::testing::ElementsAre;

class ProcessTable : public ::testing::TestWithParam<Way> {
 protected:
  std::vector<ProcessInfo> List() {
    auto all = RunTask(bench.loop, [&] { return processes.List({}, {"box", ""}, true); });
    EXPECT_TRUE(all.ok()) << all.status();
    return all.ok() ? *all : std::vector<ProcessInfo>();
  }
  ProcessInfo Listed(pid_t pid) {
    for (ProcessInfo& info : List()) {
      if (info.pid == pid) return info;
    }
    ADD_FAILURE() << pid << " is not listed";
    return {};
  }
  absl::Status Signal(pid_t pid, ProcessSignal signal) {
    return RunTask(bench.loop, [&] { return processes.SignalPid({}, {"box", ""}, pid, signal); });
  }
  // Leaves `count` sleepers behind in one group that has no leader any more.
  std::vector<pid_t> Orphans(const std::string& nap, int count) {
    std::string script;
    for (int i = 0; i < count; ++i) script += "sleep " + nap + " >/dev/null 2>&1 & ";
    EXPECT_EQ(bench.Run({.shell = script + "exit 0"}).outcome, Outcome(ExitCode{0}));
    while (Sleepers(nap).size() < static_cast<size_t>(count)) std::this_thread::yield();
    return Sleepers(nap);
  }

  ExecdProcess execd{GetParam().flags};
  ExecBench bench{execd.url()};
  ProcessClient processes{bench.daemon, bench.background, bench.client};
};

INSTANTIATE_TEST_SUITE_P(Daemons, ProcessTable, EveryDaemon(), WayName);

TEST_P(ProcessTable, ListsWhatNobodyTookNoteOf) {
  const std::string nap = Nap();
  const pid_t pid = Orphans(nap, 1)[0];
  const ProcessInfo info = Listed(pid);
  EXPECT_EQ(info.process_id, "");
  EXPECT_EQ(info.group_id, getpgid(pid));
  EXPECT_GT(info.parent_pid, 0);
  EXPECT_THAT(info.command_line, ElementsAre("sleep", nap));
  EXPECT_EQ(info.state, ProcessState::kRunning);
  EXPECT_EQ(kill(pid, SIGSTOP), 0);
  while (Listed(pid).state != ProcessState::kStopped && !HasFailure()) std::this_thread::yield();
  EXPECT_TRUE(Signal(pid, {SIGKILL, false}).ok());
  EXPECT_TRUE(AllGone(nap));
}

TEST_P(ProcessTable, ATimeOfStartIsToldWhereItIsKnown) {
  const std::string nap = Nap();
  const absl::Time before = absl::Now();
  const pid_t pid = Orphans(nap, 1)[0];
  const ProcessInfo info = Listed(pid);
  if (std::string(GetParam().name) == "own") {
    // The kernel counts in hundredths of a second from the start of the machine.
    EXPECT_GT(info.started_at, before - absl::Seconds(2));
    EXPECT_LT(info.started_at, absl::Now() + absl::Seconds(2));
  } else {
    EXPECT_EQ(info.started_at, absl::InfinitePast());
  }
  EXPECT_TRUE(Signal(pid, {SIGKILL, false}).ok());
}

TEST_P(ProcessTable, AGroupIsThatOfTheProcess) {
  const std::string nap = Nap();
  const std::vector<pid_t> pids = Orphans(nap, 3);
  EXPECT_NE(getpgid(pids[1]), pids[1]);
  EXPECT_TRUE(Signal(pids[1], {SIGKILL, true}).ok());
  // Whom nobody has waited for yet is a process, too.
  const absl::Time until = absl::Now() + absl::Seconds(10);
  while (kill(pids[1], 0) == 0 && absl::Now() < until) std::this_thread::yield();
  EXPECT_EQ(ReasonOf(Signal(pids[1], {SIGKILL, true})), R::ERROR_REASON_PROCESS_NOT_FOUND);
}

// The leader has gone, and its number still names the group.
TEST_P(ProcessTable, AGroupOutlivesItsLeader) {
  const std::string nap = Nap();
  const pid_t group = getpgid(Orphans(nap, 2)[0]);
  EXPECT_EQ(ReasonOf(Signal(group, {SIGKILL, false})), R::ERROR_REASON_PROCESS_NOT_FOUND);
  EXPECT_TRUE(Signal(group, {SIGKILL, true}).ok());
  EXPECT_TRUE(AllGone(nap));
}

// It would end the sandbox.
TEST_P(ProcessTable, TheDaemonIsNotForSignals) {
  for (const bool group : {false, true}) {
    EXPECT_EQ(ReasonOf(Signal(execd.pid(), {SIGKILL, group})), R::ERROR_REASON_PERMISSION_DENIED);
  }
  EXPECT_EQ(Listed(execd.pid()).pid, execd.pid());
}

TEST(ParseProcessList, Lines) {
  const auto list = ParseProcessList(
      "=12 1 12 S 0\n 61 00 62 20\n 63 00 00\n"
      "=13 2 0 I 0\n"
      "=x\n 61 00\n"
      "=14 1 14 Z 5\n"
      "=15 1 14 R 5\n 61 zz\n"
      "=16 1 14 T 5\n 70 61 72 74");
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].command_line, (std::vector<std::string>{"a", "b c", ""}));
  EXPECT_EQ(list[0].user, "0");
  EXPECT_EQ(list[1].pid, 13);
  EXPECT_EQ(list[2].state, ProcessState::kZombie);
  EXPECT_EQ(list[3].command_line, (std::vector<std::string>{"a"}));
  EXPECT_EQ(list[4].state, ProcessState::kStopped);
  EXPECT_EQ(list[4].command_line, (std::vector<std::string>{"part"}));
}

std::string OwnList(const std::string& entries) {
  return "{\"boot_id\":\"x\",\"processes\":[" + entries + "]}";
}

TEST(ParseOwnProcessList, Entries) {
  const auto list = ParseOwnProcessList(OwnList(
      R"({"pid":41,"ppid":1,"pgid":41,"sid":41,"uid":1000,"gid":1000,"user":"dev","state":"S",
          "start_time_ticks":81234,"started_at":"2026-11-29T17:46:39.25Z","comm":"sh",
          "cmdline_b64":["L2Jpbi9zaA==","","//4="],"self":false,"later":[]},
         {"pid":42,"ppid":0,"pgid":0,"uid":1001,"state":"Z","cmdline_b64":[]})"));
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 2u);
  const ProcessInfo& first = (*list)[0];
  EXPECT_EQ(first.pid, 41);
  EXPECT_EQ(first.parent_pid, 1);
  EXPECT_EQ(first.group_id, 41);
  EXPECT_EQ(first.user, "dev");
  EXPECT_EQ(first.state, ProcessState::kRunning);
  EXPECT_THAT(first.command_line, ElementsAre("/bin/sh", "", "\xff\xfe"));
  EXPECT_EQ(first.started_at, absl::FromUnixMillis(1795974399250));
  const ProcessInfo& second = (*list)[1];
  EXPECT_EQ(second.user, "1001");
  EXPECT_EQ(second.state, ProcessState::kZombie);
  EXPECT_EQ(second.started_at, absl::InfinitePast());
}

TEST(ParseOwnProcessList, WhatIsNoListIsNoEmptyList) {
  const std::string whole =
      R"({"pid":41,"ppid":1,"pgid":41,"uid":0,"state":"S","cmdline_b64":["eA=="]})";
  ASSERT_TRUE(ParseOwnProcessList(OwnList(whole)).ok());
  std::vector<std::string> bodies = {"", "[]", "{}", "null", "{\"processes\":{}}"};
  for (const std::string& entry :
       {std::string("1"), std::string("{}"),
        std::string(R"({"pid":0,"ppid":1,"pgid":41,"cmdline_b64":[]})"),
        std::string(R"({"pid":41,"ppid":-1,"pgid":41,"cmdline_b64":[]})"),
        std::string(R"({"pid":"41","ppid":1,"pgid":41,"cmdline_b64":[]})"),
        std::string(R"({"pid":41,"ppid":1,"pgid":41})"),
        std::string(R"({"pid":41,"ppid":1,"pgid":41,"cmdline_b64":[7]})"),
        std::string(R"({"pid":41,"ppid":1,"pgid":41,"cmdline_b64":["*"]})")}) {
    bodies.push_back(OwnList(entry));
    bodies.push_back(OwnList(whole + "," + entry));
  }
  const std::string list = OwnList(whole);
  for (size_t length = 0; length < list.size(); ++length) bodies.push_back(list.substr(0, length));
  for (const std::string& body : bodies) {
    EXPECT_EQ(ReasonOf(ParseOwnProcessList(body).status()), R::ERROR_REASON_UPSTREAM_PROTOCOL)
        << body;
  }
}

}  // namespace
}  // namespace bridge
