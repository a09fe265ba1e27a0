// SPDX-License-Identifier: Apache-2.0
//
// Processes on a real daemon: whole output, one true end, found from anywhere.
#include "bridge/opensandbox/process_client.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bridge/base/error.h"
#include "bridge/base/sha256.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using R = ErrorReason;
namespace fs = std::filesystem;

struct Seen {
  absl::Status status;
  Attached attached;
  std::string out;
  std::string err;
  std::string merged;
  int64_t next = 0;
  int64_t taken = 0;
  std::optional<Outcome> outcome;
  bool drained = false;
  bool displaced = false;
};

std::string Nap() {
  static int count = 0;
  return "7000." + std::to_string(getpid()) + std::to_string(++count);
}

// The wrapper's own command line quotes the program's: only the program has it as arguments.
std::vector<pid_t> Sleepers(const std::string& nap) {
  return ProcessesWith(std::string("sleep\0", 6) + nap);
}

class Processes : public ::testing::TestWithParam<const char*> {
 protected:
  Processes()
      : execd({std::string("--compat=") + GetParam(), "--extras=false"}), bench(execd.url()) {}
  ~Processes() override {
    for (const std::string& id : made) {
      (void)RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); });
    }
  }

  std::string Start(ProcessSpec spec, bool on_attach = false) {
    auto started = RunTask(
        bench.loop, [&] { return processes.Start({}, {"box", ""}, std::move(spec), on_attach); });
    EXPECT_TRUE(started.ok()) << started.status();
    if (!started.ok()) return "";
    made.push_back(started->process_id);
    return started->process_id;
  }
  // Attaches and reads to the end, or until `enough` is in the output.
  Seen Attach(const std::string& id, AttachOptions options, const std::string& input = "",
              const std::string& enough = "", const std::string& input_after = "") {
    return RunTask(bench.loop, [&]() -> Task<Seen> {
      Seen seen;
      auto attachment = co_await processes.Attach(bench.context, bench.box, id, options);
      seen.status = attachment.status();
      if (!attachment.ok()) co_return seen;
      bool sent = input.empty();
      while (!seen.drained && !seen.displaced) {
        absl::StatusOr<ProcessEvent> event = co_await (*attachment)->Next();
        seen.status = event.status();
        if (!event.ok()) co_return seen;
        Take(*event, &seen);
        if (!sent && seen.merged.find(input_after) != std::string::npos) {
          sent = true;
          seen.status = co_await (*attachment)->SendInput(0, input);
          if (!seen.status.ok()) co_return seen;
        }
        if (!enough.empty() && seen.merged.find(enough) != std::string::npos) co_return seen;
      }
      co_return seen;
    });
  }
  static void Take(const ProcessEvent& event, Seen* seen) {
    if (const auto* attached = std::get_if<Attached>(&event)) {
      seen->attached = *attached;
      seen->next = attached->offset;
    } else if (const auto* output = std::get_if<ProcessOutput>(&event)) {
      EXPECT_EQ(output->offset, seen->next);
      seen->next = output->offset + static_cast<int64_t>(output->data.size());
      seen->merged += output->data;
      if (output->stream) {
        (*output->stream == StreamId::kStdout ? seen->out : seen->err) += output->data;
      }
    } else if (const auto* taken = std::get_if<StdinTaken>(&event)) {
      seen->taken = taken->offset;
    } else if (const auto* exited = std::get_if<ProcessExited>(&event)) {
      EXPECT_FALSE(seen->outcome.has_value());
      seen->outcome = exited->outcome;
    } else if (std::holds_alternative<Displaced>(event)) {
      seen->displaced = true;
    } else {
      seen->drained = true;
      EXPECT_EQ(std::get<ProcessDrained>(event).end_offset, seen->next);
    }
  }

  ExecdProcess execd;
  ExecBench bench;
  ProcessClient processes{bench.daemon, bench.background, bench.client};
  std::vector<std::string> made;
};

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

TEST_P(Processes, InputEndsOnPipes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string input;
  while (input.size() < 200'000) input += all;
  const std::string id = Start({.argv = {"sh", "-c", "sha256sum; cat; echo end"}});
  const Seen seen = RunTask(bench.loop, [&]() -> Task<Seen> {
    Seen got;
    const AttachOptions from_start{.offset = 0};
    auto attachment = co_await processes.Attach(bench.context, bench.box, id, from_start);
    got.status = attachment.status();
    if (!attachment.ok()) co_return got;
    for (size_t at = 0; at < input.size(); at += 70'000) {
      got.status =
          co_await (*attachment)->SendInput(static_cast<int64_t>(at), input.substr(at, 70'000));
      if (!got.status.ok()) co_return got;
    }
    got.status = co_await (*attachment)->SendEof();
    const absl::Status late =
        co_await (*attachment)->SendInput(static_cast<int64_t>(input.size()), "late");
    EXPECT_EQ(ReasonOf(late), R::ERROR_REASON_INVALID_ARGUMENT) << late;
    while (got.status.ok() && !got.drained) {
      absl::StatusOr<ProcessEvent> event = co_await (*attachment)->Next();
      got.status = event.status();
      if (event.ok()) Take(*event, &got);
    }
    co_return got;
  });
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  Sha256 digest;
  digest.Update(input);
  EXPECT_EQ(seen.out, digest.FinishHex() + "  -\nend\n");
  EXPECT_EQ(seen.taken, static_cast<int64_t>(input.size()));
  EXPECT_EQ(seen.outcome, Outcome(ExitCode{0}));
}

TEST_P(Processes, SignalsOfTheGroupLeaveTheInputAlone) {
  const std::string id =
      Start({.shell = "trap 'echo got' TERM USR1 HUP; echo on; while :; do "
                      "if read -r a; then echo \"<$a>\"; else sleep 0.05; fi; done"});
  const Seen seen = Attach(id, {.offset = 0}, "", "on\n");
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) {
    const absl::Status sent = RunTask(bench.loop, [&] {
      return processes.Signal({}, {"box", ""}, id, {signal, /*group=*/true});
    });
    EXPECT_TRUE(sent.ok()) << sent;
  }
  EXPECT_THAT(Attach(id, {.offset = 0}, "after\n", "<after>").merged, HasSubstr("<after>"));
}

TEST_P(Processes, InputIsTakenAndAcknowledged) {
  const std::string id = Start({.shell = "read a; read b; echo \"[$a][$b]\""});
  const Seen seen = Attach(id, {.offset = 0}, "one\ntwo\n");
  EXPECT_EQ(seen.out + seen.merged, "[one][two]\n[one][two]\n");
  EXPECT_EQ(seen.taken, 8);
  EXPECT_EQ(seen.outcome, Outcome(ExitCode{0}));
}

TEST_P(Processes, TerminalHasItsSizeFromTheStart) {
  const Seen seen =
      Attach(Start({.shell = "stty size; echo $TERM", .terminal = {{30, 100}}}), {.offset = 0});
  EXPECT_EQ(seen.merged, "30 100\r\nxterm-256color\r\n");
}

TEST_P(Processes, ControlCInterruptsOnATerminal) {
  const std::string nap = Nap();
  const std::string id = Start({.shell = "echo up; sleep " + nap, .terminal = TerminalSize{}});
  const Seen seen = Attach(id, {.offset = 0}, "\x03", "", "up");
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_TRUE(seen.outcome.has_value());
  EXPECT_THAT(Sleepers(nap), IsEmpty());
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
  EXPECT_EQ(Attach(killed, {.offset = 0}).outcome, Outcome(Signalled{9}));
  EXPECT_THAT(Sleepers(nap), IsEmpty());
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
  EXPECT_THAT(Sleepers(nap), IsEmpty());
  EXPECT_EQ(ReasonOf(Attach(id, {}).status), R::ERROR_REASON_PROCESS_NOT_FOUND);
  EXPECT_THAT(*list(false), IsEmpty());
}

TEST(ParseProcessList, OddCommandLines) {
  const auto list =
      ParseProcessList(std::string_view("12 1 12 S 0\0a\0b c\0\0\0"
                                        "13 2 0 I 0\0\0\0"
                                        "x\0\0\0"
                                        "14 1 14 Z 5\0\0\0",
                                        52));
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].command_line, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(list[0].user, "0");
  EXPECT_EQ(list[1].pid, 13);
  EXPECT_EQ(list[2].state, ProcessState::kZombie);
}

}  // namespace
}  // namespace bridge
