// SPDX-License-Identifier: Apache-2.0
//
// Processes on a real daemon: whole output, one true end, found from anywhere.
#include "bridge/opensandbox/process_client.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <string>

#include "bridge/base/error.h"
#include "tests/opensandbox/process_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using R = ErrorReason;

INSTANTIATE_TEST_SUITE_P(Daemons, Processes, ::testing::Values("1.1.0", "current"),
                         [](const auto& info) {
                           return std::string(info.param) == "current" ? "current" : "v110";
                         });

TEST_P(Processes, TheTailIsNeverLost) {
  for (int i = 0; i < 10; ++i) {
    const bool terminal = i % 2 == 0;
    ProcessSpec spec{.shell = "seq 1 2000; exit 7"};
    if (terminal) spec.terminal = TerminalSize{};
    const Seen seen = Attach(Start(spec), {.offset = 0});
    ASSERT_TRUE(seen.status.ok()) << seen.status;
    std::string expected;
    for (int n = 1; n <= 2000; ++n) expected += std::to_string(n) + (terminal ? "\r\n" : "\n");
    EXPECT_TRUE(seen.merged == expected) << seen.merged.size() << " of " << expected.size();
    EXPECT_EQ(seen.outcome, Outcome(ExitCode{7}));
  }
}

TEST_P(Processes, PipesKeepStreamsApartAndBytesExact) {
  const Seen seen = Attach(Start({.shell = "printf 'a\\r\\n\\377\\0b'; echo e >&2; exit 3"}, true),
                           {.offset = 0});
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_EQ(seen.out, std::string("a\r\n\xff\0b", 6));
  EXPECT_EQ(seen.err, "e\n");
  EXPECT_EQ(seen.outcome, Outcome(ExitCode{3}));
  EXPECT_TRUE(seen.attached.streams_apart);
}

// "Permission denied": the pipes and the terminal were the daemon's.
TEST_P(Processes, AUsersProcessMayOpenItsOutputsByTheirNames) {
  if (geteuid() != 0) GTEST_SKIP() << "changing users needs root";
  ProcessSpec spec{.shell = "id -u; echo a >/dev/stdout; echo b >/dev/stderr",
                   .user = {.name = "nobody"}};
  const Seen pipes = Attach(Start(spec, true), {.offset = 0});
  ASSERT_TRUE(pipes.status.ok()) << pipes.status;
  EXPECT_EQ(pipes.out, "65534\na\n") << pipes.err;
  EXPECT_EQ(pipes.err, "b\n");
  spec.terminal = TerminalSize{};
  EXPECT_EQ(Attach(Start(spec), {.offset = 0}).merged, "65534\r\na\r\nb\r\n");
}

TEST_P(Processes, EndedProcessTellsItsEndAgainAndIsNotRunAgain) {
  const std::string id = Start({.argv = {"sh", "-c", "echo run; exit 3"}});
  for (int i = 0; i < 3; ++i) {
    const Seen seen = Attach(id, {.offset = 0});
    EXPECT_EQ(seen.merged, "run\n");
    EXPECT_EQ(seen.outcome, Outcome(ExitCode{3}));
  }
  const Seen late = Attach(id, {});
  EXPECT_EQ(late.merged, "");
  EXPECT_EQ(late.outcome, Outcome(ExitCode{3}));
  EXPECT_FALSE(late.attached.running);
}

TEST_P(Processes, RunsAgainOnlyWhenAsked) {
  const std::string id = Start({.shell = "echo run; exit 3"});
  EXPECT_EQ(Attach(id, {.offset = 0}).merged, "run\n");
  const Seen again = Attach(id, {.restart_if_exited = true});
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.attached.restarted);
  EXPECT_EQ(again.merged, "run\n");
  EXPECT_EQ(again.outcome, Outcome(ExitCode{3}));
  EXPECT_EQ(Attach(id, {.offset = 0}).merged, "run\nrun\n");
  // The numbers have no hole between the runs, wherever one begins.
  EXPECT_EQ(Attach(id, {.offset = 4}).merged, "run\n");
  EXPECT_EQ(Attach(id, {.offset = 6}).merged, "n\n");
  EXPECT_EQ(Attach(id, {.offset = 8}).merged, "");
  EXPECT_EQ(ReasonOf(Attach(id, {.offset = 9}).status), R::ERROR_REASON_INVALID_ARGUMENT);
  const auto info = RunTask(bench.loop, [&] { return processes.Get({}, {"box", ""}, id); });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->output_offset, 8);
}

TEST_P(Processes, NumbersHaveNoHolesOnTerminals) {
  const std::string id = Start({.shell = "printf 12345", .terminal = TerminalSize{}});
  EXPECT_EQ(Attach(id, {.offset = 0}).merged, "12345");
  for (int run = 2; run < 5; ++run) {
    const Seen again = Attach(id, {.restart_if_exited = true});
    ASSERT_TRUE(again.status.ok()) << again.status;
    EXPECT_EQ(again.attached.offset, 5 * (run - 1));
    EXPECT_EQ(again.next, 5 * run);
  }
  EXPECT_EQ(Attach(id, {.offset = 12}).merged, "34512345");
}

TEST_P(Processes, TerminalHasItsSizeFromTheStart) {
  const Seen seen =
      Attach(Start({.shell = "stty size; echo $TERM", .terminal = {{30, 100}}}), {.offset = 0});
  EXPECT_EQ(seen.merged, "30 100\r\nxterm-256color\r\n");
}

// Variables of the wrapper's that have the name of one of the program's.
TEST_P(Processes, EveryNameInTheEnvironmentIsTheProgramsOwn) {
  ProcessSpec spec{.argv = {"env"}, .cwd = "/"};
  for (char name = 'A'; name <= 'z'; ++name) {
    if (name <= 'Z' || name >= 'a') spec.env.emplace_back(std::string(1, name), "mine");
  }
  for (const bool terminal : {false, true}) {
    if (terminal) spec.terminal = TerminalSize{};
    const Seen seen = Attach(Start(spec), {.offset = 0});
    ASSERT_TRUE(seen.status.ok()) << seen.status;
    EXPECT_EQ(seen.outcome, Outcome(ExitCode{0}));
    for (const auto& [name, value] : spec.env) {
      EXPECT_THAT("\n" + seen.merged, HasSubstr("\n" + name + "=" + value)) << terminal;
    }
  }
}

TEST_P(Processes, ControlCInterruptsOnATerminal) {
  const std::string nap = Nap();
  const std::string id = Start({.shell = "echo up; sleep " + nap, .terminal = TerminalSize{}});
  const Seen seen = Attach(id, {.offset = 0}, "\x03", "", "up");
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_TRUE(seen.outcome.has_value());
  EXPECT_TRUE(AllGone(nap));
}

TEST_P(Processes, ResumesAtAnyByte) {
  const std::string id = Start({.shell = "seq 1 5000"});
  const std::string all = Attach(id, {.offset = 0}).merged;
  for (int64_t offset : {0, 1, 777, 20'000, static_cast<int>(all.size())}) {
    EXPECT_TRUE(Attach(id, {.offset = offset}).merged == all.substr(static_cast<size_t>(offset)));
  }
  EXPECT_EQ(ReasonOf(Attach(id, {.offset = 1'000'000'000}).status),
            R::ERROR_REASON_INVALID_ARGUMENT);
}

TEST_P(Processes, WhatIsNoLongerHeldIsAGap) {
  const std::string id = Start({.shell = "head -c 3000000 /dev/zero; echo END"});
  // Without a holder the daemon keeps the newest MiB.
  const Seen end = Attach(id, {}, "", "END");
  const Seen gap = Attach(id, {.offset = 0});
  EXPECT_EQ(ReasonOf(gap.status), R::ERROR_REASON_REPLAY_GAP) << gap.status;
  EXPECT_GT(std::stoll(MetadataOf(gap.status)["first_available"]), 0);
}

TEST_P(Processes, OneHolderAtATime) {
  const std::string id = Start({.shell = "echo up; sleep " + Nap()});
  RunTask(bench.loop, [&]() -> Task<void> {
    const AttachOptions polite{.offset = 0};
    const AttachOptions taking{.offset = 0, .takeover = true};
    auto first = co_await processes.Attach(bench.context, bench.box, id, polite);
    EXPECT_TRUE(first.ok()) << first.status();
    if (!first.ok()) co_return;
    auto second = co_await processes.Attach(bench.context, bench.box, id, polite);
    EXPECT_EQ(ReasonOf(second.status()), R::ERROR_REASON_ALREADY_ATTACHED) << second.status();
    second = co_await processes.Attach(bench.context, bench.box, id, taking);
    EXPECT_TRUE(second.ok()) << second.status();
    Seen seen;
    while (!seen.displaced) {
      auto event = co_await (*first)->Next();
      EXPECT_TRUE(event.ok()) << event.status();
      if (!event.ok()) co_return;
      Take(*event, &seen);
    }
  });
}

TEST_P(Processes, SignalsReachTheProgram) {
  const std::string nap = Nap();
  const std::string id = Start({.shell = "trap 'echo got; exit 9' USR1; echo up; "
                                         "while :; do sleep 0.05; done"});
  EXPECT_THAT(Attach(id, {.offset = 0}, "", "up").merged, HasSubstr("up"));
  EXPECT_TRUE(RunTask(bench.loop, [&] {
                return processes.Signal({}, {"box", ""}, id, {SIGUSR1, false});
              }).ok());
  EXPECT_EQ(Attach(id, {.offset = 0}).outcome, Outcome(ExitCode{9}));
  const std::string killed = Start({.shell = "echo up; sleep " + nap + " & sleep " + nap});
  Attach(killed, {.offset = 0}, "", "up");
  EXPECT_TRUE(RunTask(bench.loop, [&] {
                return processes.Signal({}, {"box", ""}, killed, {SIGKILL, true});
              }).ok());
  EXPECT_EQ(Attach(killed, {.offset = 0}).outcome, Outcome(CancelledEnd{true, Signalled{9}}));
  EXPECT_TRUE(AllGone(nap));
  EXPECT_EQ(
      ReasonOf(RunTask(
          bench.loop, [&] { return processes.Signal({}, {"box", ""}, killed, {SIGTERM, false}); })),
      R::ERROR_REASON_PROCESS_NOT_FOUND);
}

TEST_P(Processes, SpawnFailuresAreTold) {
  using Kind = SpawnFailed::Kind;
  const auto kind = [this](ProcessSpec spec) {
    const Seen seen = Attach(Start(std::move(spec)), {.offset = 0});
    const auto* failed = seen.outcome ? std::get_if<SpawnFailed>(&*seen.outcome) : nullptr;
    return failed != nullptr ? failed->kind : Kind::kOther;
  };
  EXPECT_EQ(kind({.argv = {"no-such-program"}}), Kind::kNotFound);
  EXPECT_EQ(kind({.argv = {"/etc/passwd"}}), Kind::kNotExecutable);
  EXPECT_EQ(kind({.shell = "pwd", .cwd = "/no/such"}), Kind::kBadCwd);
}

// A shell gives each job a group of its own; a hang-up reaches only the one in the foreground.
TEST_P(Processes, ATerminalIsDeletedWithAllItsJobs) {
  const std::string nap = Nap();
  const std::string id =
      Start({.shell = "set -m; for i in 1 2 3; do sleep " + nap + " & done; echo up; wait",
             .terminal = TerminalSize{24, 80}});
  EXPECT_TRUE(Attach(id, {.offset = 0}, "", "up\r\n").status.ok());
  const absl::Time until = absl::Now() + absl::Seconds(10);
  while (Sleepers(nap).size() < 3 && absl::Now() < until) std::this_thread::yield();
  EXPECT_EQ(Sleepers(nap).size(), 3u);
  EXPECT_TRUE(*RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); }));
  EXPECT_TRUE(AllGone(nap)) << Sleepers(nap).size() << " jobs are left";
}

TEST_P(Processes, ListsAndForgets) {
  const std::string nap = Nap();
  const std::string id = Start({.argv = {"sleep", nap}});
  const auto list = [this](bool all) {
    return RunTask(bench.loop, [&] { return processes.List({}, {"box", ""}, all); });
  };
  auto own = list(false);
  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_EQ(own->size(), 1u);
  EXPECT_EQ(own->front().process_id, id);
  auto all = list(true);
  ASSERT_TRUE(all.ok()) << all.status();
  bool found = false;
  for (const ProcessInfo& info : *all) {
    if (info.process_id != id) continue;
    found = true;
    EXPECT_EQ(info.command_line, (std::vector<std::string>{"sleep", nap}));
    EXPECT_GT(info.parent_pid, 1);
  }
  EXPECT_TRUE(found);
  const auto info = RunTask(bench.loop, [&] { return processes.Get({}, {"box", ""}, id); });
  EXPECT_EQ(info->state, ProcessState::kRunning);
  EXPECT_TRUE(*RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); }));
  EXPECT_FALSE(*RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); }));
  EXPECT_TRUE(AllGone(nap));
  EXPECT_EQ(ReasonOf(Attach(id, {}).status), R::ERROR_REASON_PROCESS_NOT_FOUND);
  EXPECT_THAT(*list(false), IsEmpty());
}

}  // namespace
}  // namespace bridge
