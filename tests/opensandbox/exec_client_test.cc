// SPDX-License-Identifier: Apache-2.0
//
// Commands on a real daemon process, over real sockets: each way of running them must keep the same
// promises.
#include "bridge/opensandbox/exec_client.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/exec_id.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using R = ErrorReason;
namespace fs = std::filesystem;

// An argument of sleep that no other test has, so that its process is found by it.
std::string Nap() {
  static int count = 0;
  return "6000." + std::to_string(getpid()) + std::to_string(++count);
}

class ExactExec : public ::testing::TestWithParam<Way> {
 protected:
  ExactExec() : execd(GetParam().flags), bench(execd.url()) {}

  // What lies in the daemon's TMPDIR that a command or a bridge left there; not execd's own spool.
  std::vector<std::string> LeftFiles() {
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(execd.tmpdir())) {
      const std::string name = entry.path().filename();
      const bool spool = name == "opensandbox-execd" || entry.path().extension() == ".stdout" ||
                         entry.path().extension() == ".stderr" ||
                         entry.path().extension() == ".output";
      if (!spool) left.push_back(name);
    }
    return left;
  }
  std::string Path(const std::string& name) { return execd.tmpdir() + "/" + name; }

  ExecdProcess execd;
  ExecBench bench;
};

INSTANTIATE_TEST_SUITE_P(Daemons, ExactExec, EveryDaemon(), WayName);

TEST_P(ExactExec, ExactBytesStreamsApartAndTheExitCode) {
  const ExecResult result = bench.Run({.shell = "printf 'a\\r\\n\\377b'; echo err >&2; exit 3"});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.out,
            "a\r\n\xff"
            "b");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.outcome, Outcome(ExitCode{3}));
  EXPECT_EQ(result.fidelity, ExecFidelity::kBytes);
  EXPECT_EQ(result.last.stdout_bytes, 5);
  EXPECT_EQ(result.last.stderr_bytes, 4);
  EXPECT_FALSE(result.last.lossy);
}

TEST_P(ExactExec, LastLinesAndBlankLinesAsTheyAre) {
  for (const char* text : {"abc", "a\\nb", "", "a\\n\\nb\\n\\n\\nc\\n", "\\n\\n", "a\\0b\\0"}) {
    const ExecResult result = bench.Run({.argv = {"printf", text}});
    std::string expected;
    for (const char* c = text; *c != 0; ++c) {
      const bool escape = *c == '\\';
      if (escape) ++c;
      expected += !escape ? *c : *c == 'n' ? '\n' : '\0';
    }
    EXPECT_EQ(result.out, expected) << text;
  }
}

TEST_P(ExactExec, ArgumentsArriveUnchanged) {
  const ExecResult result = bench.Run({.argv = {"printf", "[%s]", "", "a b", "*", "$(id)", "-n",
                                                "l1\nl2", "it's", "\"", "\\", "\xe6\x97\xa5"}});
  EXPECT_EQ(result.out, "[][a b][*][$(id)][-n][l1\nl2][it's][\"][\\][\xe6\x97\xa5]");
}

TEST_P(ExactExec, ExitCodesAreData) {
  for (int code : {0, 1, 2, 42, 126, 127, 128, 137, 255}) {
    const ExecResult result = bench.Run({.shell = "exit " + std::to_string(code)});
    EXPECT_EQ(result.outcome, Outcome(ExitCode{code}));
  }
  EXPECT_EQ(bench.Run({.shell = "no-such-program"}).outcome, Outcome(ExitCode{127}));
}

TEST_P(ExactExec, DeathBySignalIsNoExitCode) {
  for (int signal : {SIGKILL, SIGSEGV, SIGTERM}) {
    const ExecResult result = bench.Run({.shell = "kill -" + std::to_string(signal) + " $$"});
    ASSERT_TRUE(result.outcome && std::holds_alternative<Signalled>(*result.outcome));
    EXPECT_EQ(std::get<Signalled>(*result.outcome).number, signal);
  }
}

TEST_P(ExactExec, ProgramsThatCannotBeStarted) {
  using Kind = SpawnFailed::Kind;
  const auto kind = [this](ExecSpec spec) {
    const ExecResult result = bench.Run(std::move(spec));
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.out + result.err, "");
    const auto* failed = result.outcome ? std::get_if<SpawnFailed>(&*result.outcome) : nullptr;
    return failed != nullptr ? failed->kind : Kind::kOther;
  };
  EXPECT_EQ(kind({.argv = {"no-such-program"}}), Kind::kNotFound);
  EXPECT_EQ(kind({.argv = {"/no/such/program"}}), Kind::kNotFound);
  EXPECT_EQ(kind({.argv = {"/etc/passwd"}}), Kind::kNotExecutable);
  EXPECT_EQ(kind({.shell = "pwd", .cwd = "/no/such"}), Kind::kBadCwd);
  EXPECT_EQ(kind({.shell = "pwd", .cwd = "/etc/passwd"}), Kind::kBadCwd);
  EXPECT_EQ(kind({.argv = {"true", std::string(200'000, 'x')}}), Kind::kArgumentsTooLong);
}

// What told it from an exit code of the command was removed with its folder.
TEST_P(ExactExec, WhatCouldNotBeStartedIsToldLaterToo) {
  for (const ExecSpec& spec : {ExecSpec{.argv = {"/no/such/program"}}, ExecSpec{.argv = {"/etc"}},
                               ExecSpec{.argv = {"true"}, .cwd = "/no/such/directory"}}) {
    const ExecResult result = bench.Run(spec);
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_TRUE(std::holds_alternative<SpawnFailed>(*result.outcome));
    bench.Settle();
    if (result.id.empty()) continue;  // there is nothing to ask for
    const auto info = bench.Get(result.id);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->outcome, result.outcome);
  }
}

TEST_P(ExactExec, EnvironmentArrivesByteByByte) {
  const std::string odd = "$HOME 'q' \"d\" `b` \\ \xf0\x9f\x98\x80\nl2\n";
  const ExecResult result =
      bench.Run({.argv = {"env", "-0"},
                 .env = {{"A", "hello world"}, {"B", "a=b=c"}, {"D", odd}, {"E", ""}}});
  for (const std::string& line :
       {std::string("A=hello world"), std::string("B=a=b=c"), "D=" + odd, std::string("E=")}) {
    EXPECT_THAT(std::string(1, '\0') + result.out,
                HasSubstr(std::string(1, '\0') + line + std::string(1, '\0')));
  }
  EXPECT_THAT(result.out, HasSubstr("PATH="));
}

TEST_P(ExactExec, CwdIsLiteral) {
  fs::create_directory(Path("a $HOME b"));
  EXPECT_EQ(bench.Run({.argv = {"pwd"}, .cwd = Path("a $HOME b")}).out, Path("a $HOME b") + "\n");
}

TEST_P(ExactExec, UserByNumberAndByName) {
  if (geteuid() != 0) GTEST_SKIP() << "changing users needs root";
  fs::permissions(execd.tmpdir(), fs::perms::all);
  EXPECT_EQ(bench.Run({.argv = {"id", "-u"}, .user = {.name = "nobody"}}).out, "65534\n");
  const ExecResult result =
      bench.Run({.shell = "id -u; id -g; echo $HOME", .user = {.uid = 4242}, .stdin_bytes = "x"});
  EXPECT_EQ(result.out.substr(0, 10), "4242\n4242\n") << result.status;
  EXPECT_EQ(ReasonOf(bench.Run({.argv = {"id"}, .user = {.name = "no-such-user"}}).status),
            R::ERROR_REASON_UNKNOWN_USER);
}

TEST_P(ExactExec, StdinSmallLargeAndNone) {
  EXPECT_EQ(bench.Run({.argv = {"cat"}}).out, "");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(bench.Run({.argv = {"cat"}, .stdin_bytes = all}).out, all);
  std::string large;
  for (int i = 0; i < 5000; ++i) large += all;
  large += "no line end";
  const ExecResult result = bench.Run({.shell = "cat; echo after >&2", .stdin_bytes = large});
  EXPECT_TRUE(result.out == large) << result.out.size() << " of " << large.size();
  EXPECT_EQ(result.err, "after\n");
}

TEST_P(ExactExec, LargeOutputIsComplete) {
  const ExecResult result = bench.Run({.shell = "head -c 20000000 /dev/zero; seq 1 100000 >&2"});
  EXPECT_EQ(result.out.size(), 20'000'000u);
  EXPECT_EQ(result.err.size(), 588'895u);
  EXPECT_EQ(result.last.stdout_bytes, 20'000'000);
}

TEST_P(ExactExec, OutputComesWhileItRuns) {
  // The command goes on only once its first output was seen.
  const std::string gate = Path("gate");
  std::string seen;
  RunTask(bench.loop, [&]() -> Task<void> {
    const ExecSpec spec{.shell = "echo first; while [ ! -e " + gate +
                                 " ]; do sleep 0.01; done; echo second"};
    auto exec = co_await bench.client.Start(bench.context, bench.box, spec, absl::Seconds(5));
    ExecBatch batch;
    while (exec.ok() && !batch.drained && (co_await (*exec)->Next(&batch, absl::Seconds(5))).ok()) {
      for (const ExecOutput& output : batch.outputs) seen += output.data;
      if (seen == "first\n") std::ofstream(gate) << "";
    }
  });
  EXPECT_EQ(seen, "first\nsecond\n");
}

TEST_P(ExactExec, SilentCommandReportsNothingInTime) {
  RunTask(bench.loop, [&]() -> Task<void> {
    const ExecSpec spec{.argv = {"sleep", "600"}};
    auto exec =
        co_await bench.client.Start(bench.context, bench.box, spec, absl::Milliseconds(200));
    EXPECT_TRUE(exec.ok());
    if (!exec.ok()) co_return;
    ExecBatch batch;
    const absl::Status status = co_await (*exec)->Next(&batch, absl::Milliseconds(200));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(batch.outputs.empty() && !batch.exited && !batch.drained);
  });
}

TEST_P(ExactExec, TimeoutIsToldFromAKill) {
  const ExecResult result =
      bench.Run({.shell = "echo so far; sleep 600", .timeout = absl::Milliseconds(300)});
  EXPECT_EQ(result.out, "so far\n");
  EXPECT_TRUE(result.outcome && std::holds_alternative<TimedOut>(*result.outcome));
}

TEST_P(ExactExec, BackgroundChildrenDoNotHoldTheCall) {
  const absl::Time start = absl::Now();
  EXPECT_EQ(bench.Run({.shell = "sleep 7.125 & echo started"}).out, "started\n");
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

// "IMPORTANT" was thrown away, and everything said that the output was complete.
TEST_P(ExactExec, OutputThatNobodyWaitsForIsDeclared) {
  const bool own = GetParam().flags.empty();
  const auto told = [&](const char* shell) {
    ExecResult result = bench.Run({.shell = shell, .detach_on_disconnect = true});
    EXPECT_EQ(result.out, "a\n");
    EXPECT_EQ(bench.Get(result.id)->still_open, result.last.still_open);
    return result.last.still_open;
  };
  using Told = std::optional<bool>;
  EXPECT_EQ(told("(sleep 5; echo IMPORTANT) & echo a"), own ? Told(true) : Told());
  EXPECT_EQ(told("sleep 5 >/dev/null & echo a"), own ? Told(true) : Told());  // stderr
  EXPECT_EQ(told("sleep 5 >/dev/null 2>&1 & echo a"), own ? Told(false) : Told());
}

TEST_P(ExactExec, DroppedCommandDiesWithItsGroupAndLeavesOnlyThatItWasCut) {
  // A member of the group ignores SIGTERM.
  const std::string nap = Nap();
  const std::string id = bench.StartAndDrop(
      {.shell = "(trap '' TERM; sleep " + nap + "; sleep " + nap + ") & echo up; sleep " + nap},
      "up");
  EXPECT_NE(id, "");
  bench.Settle();
  EXPECT_THAT(SurvivorsWith(nap), IsEmpty());
  const std::vector<std::string> left = LeftFiles();
  ASSERT_EQ(left.size(), GetParam().flags.empty() ? 0u : 1u);
  for (const std::string& name : left) {
    EXPECT_TRUE(name.ends_with(".cut")) << name;
    EXPECT_TRUE(fs::is_empty(Path(name)));
  }
}

TEST_P(ExactExec, CommandsThatEndLeaveNothing) {
  for (int i = 0; i < 20; ++i) bench.Run({.argv = {"cat"}, .stdin_bytes = "x"});
  bench.Run({.argv = {"cat"}, .stdin_bytes = std::string(1 << 20, 'x')});
  bench.Settle();
  EXPECT_THAT(LeftFiles(), IsEmpty());
}

TEST_P(ExactExec, InputOfACommandThatCannotBeStartedIsNotLeftBehind) {
  const std::string too_long(131'072, 'x');
  const ExecResult result =
      bench.Run({.argv = {"true", too_long}, .stdin_bytes = std::string(1 << 20, 'x')});
  ASSERT_TRUE(result.status.ok()) << result.status;
  const auto* failed = std::get_if<SpawnFailed>(&*result.outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->kind, SpawnFailed::Kind::kArgumentsTooLong);
  bench.Settle();
  EXPECT_THAT(LeftFiles(), IsEmpty());
}

TEST_P(ExactExec, CancelledStartLeavesNoProcess) {
  // Cut at once: the id of the command has not come yet.
  const std::string nap = Nap();
  CancelSource cancel;
  bench.loop.RunAndWait([&] {
    Spawn(
        &cancel,
        [&]() -> Task<void> {
          const ExecSpec spec{.argv = {"sleep", nap}};
          auto exec = co_await bench.client.Start(bench.context, bench.box, spec, absl::Seconds(1));
          (void)exec;
        },
        [] {});
  });
  bench.loop.RunAndWait([&] { cancel.Cancel(); });
  bench.Settle();
  EXPECT_THAT(SurvivorsWith(nap), IsEmpty());
}

TEST_P(ExactExec, DetachedCommandIsFoundAgainFromAnyByte) {
  const std::string gate = Path("gate");
  const std::string id =
      bench.StartAndDrop({.shell = "printf abc; echo e >&2; while [ ! -e " + gate +
                                   " ]; do sleep 0.01; done; printf def; exit 5",
                          .detach_on_disconnect = true},
                         "abc");
  ASSERT_NE(id, "");
  auto info = bench.Get(id);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->running);
  EXPECT_FALSE(info->outcome.has_value());
  std::ofstream(gate) << "";
  ExecBench elsewhere(execd.url());  // another bridge
  ExecResult result = elsewhere.Attach(id);
  EXPECT_EQ(result.out, "abcdef");
  EXPECT_EQ(result.err, "e\n");
  EXPECT_EQ(result.outcome, Outcome(ExitCode{5}));
  info = bench.Get(id);
  ASSERT_TRUE(info.ok());
  EXPECT_FALSE(info->running);
  EXPECT_EQ(info->outcome, Outcome(ExitCode{5}));
}

TEST_P(ExactExec, AttachDeliversFromTheByteAskedFor) {
  const std::string id =
      bench.StartAndDrop({.shell = "printf abcdef; exit 5", .detach_on_disconnect = true}, "f");
  RunTask(bench.loop, [&]() -> Task<void> {
    auto exec =
        co_await bench.client.Attach(bench.context, bench.box, id, 4, 0, false, absl::Seconds(1));
    EXPECT_TRUE(exec.ok()) << exec.status();
    std::string seen;
    ExecBatch batch;
    while (exec.ok() && !batch.drained && (co_await (*exec)->Next(&batch, absl::Seconds(5))).ok()) {
      for (const ExecOutput& output : batch.outputs) seen += output.data;
    }
    EXPECT_EQ(seen, "ef");
    EXPECT_EQ(batch.stdout_bytes, 6);
  });
}

TEST_P(ExactExec, UnknownExecIsNotFound) {
  using Route = ExecId::Route;
  for (const std::string& id :
       {std::string("nonsense"), FormatExecId({Route::kOwn, "0123"}),
        FormatExecId({Route::kFiles, "0123", "9"}), FormatExecId({Route::kLines, "0123"})}) {
    EXPECT_EQ(ReasonOf(bench.Get(id).status()), R::ERROR_REASON_PROCESS_NOT_FOUND) << id;
    EXPECT_EQ(ReasonOf(bench.Signal(id, SIGTERM).status()), R::ERROR_REASON_PROCESS_NOT_FOUND)
        << id;
  }
}

TEST_P(ExactExec, DaemonThatDiesLosesTheCommandHonestly) {
  RunTask(bench.loop, [&]() -> Task<void> {
    const ExecSpec spec{.shell = "echo before; sleep 600"};
    auto exec =
        co_await bench.client.Start(bench.context, bench.box, spec, absl::Milliseconds(200));
    EXPECT_TRUE(exec.ok());
    if (!exec.ok()) co_return;
    std::string seen;
    std::optional<Outcome> outcome;
    ExecBatch batch;
    bool killed = false;
    while (!batch.drained) {
      const absl::Status status = co_await (*exec)->Next(&batch, absl::Milliseconds(200));
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) co_return;
      for (const ExecOutput& output : batch.outputs) seen += output.data;
      if (batch.exited) outcome = batch.exited;
      if (!killed && !seen.empty()) {
        killed = true;
        execd.Kill(SIGKILL);
        bench.directory.SetExplanation(
            MakeError(R::ERROR_REASON_SANDBOX_NOT_FOUND, "the sandbox is gone"));
      }
    }
    EXPECT_EQ(seen, "before\n");
    EXPECT_TRUE(outcome && std::holds_alternative<Lost>(*outcome));
    EXPECT_TRUE(batch.lossy);
  });
}

TEST_P(ExactExec, EndedExecIsNotSlowedByTheDaemonsLinger) {
  const absl::Time start = absl::Now();
  for (int i = 0; i < 20; ++i) bench.Run({.argv = {"true"}});
  EXPECT_LT(absl::Now() - start, absl::Seconds(4)) << "each waited for the end of the stream";
}

}  // namespace
}  // namespace bridge
