// SPDX-License-Identifier: Apache-2.0
//
// Signals to a command, on a real daemon process of each kind: they arrive, and the end says who
// sent them.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/exec_client.h"
#include "bridge/opensandbox/exec_script.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using R = ErrorReason;

class ExecSignal : public ::testing::TestWithParam<Way> {
 protected:
  ExecSignal() : execd(GetParam().flags), bench(execd.url()) {}

  ExecdProcess execd;
  ExecBench bench;
};

INSTANTIATE_TEST_SUITE_P(Daemons, ExecSignal, EveryDaemon(), WayName);

TEST_P(ExecSignal, AnySignalReachesTheGroup) {
  const std::string id = bench.StartAndDrop(
      {.shell = "trap 'echo got; exit 9' USR1; echo up; while :; do sleep 0.05; done",
       .detach_on_disconnect = true},
      "up");
  const auto sent = bench.Signal(id, SIGUSR1);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_TRUE(sent->delivery_confirmed);
  const ExecResult result = bench.Attach(id);
  EXPECT_THAT(result.out, HasSubstr("got\n"));
  EXPECT_EQ(result.outcome, Outcome(ExitCode{9}));
  EXPECT_EQ(ReasonOf(bench.Signal(id, SIGUSR1).status()), R::ERROR_REASON_PROCESS_NOT_FOUND);
}

TEST_P(ExecSignal, DeathByASignalSentThroughTheBridgeIsACancellation) {
  for (const int number : {SIGTERM, SIGKILL}) {
    const std::string id = bench.StartAndDrop(
        {.shell = "echo up; exec sleep 600", .detach_on_disconnect = true}, "up");
    ASSERT_TRUE(bench.Signal(id, number).ok());
    const Outcome cancelled = CancelledEnd{true, Signalled{number}};
    EXPECT_EQ(bench.Attach(id).outcome, cancelled) << number;
    EXPECT_EQ(bench.Get(id)->outcome, cancelled) << number;
  }
}

// Was somebody else's signal on a stock daemon, and on ours an exec that nobody had ever heard of.
TEST_P(ExecSignal, TheOutcomeOfACutExecIsACancellationForEverybodyElse) {
  const std::string id = bench.StartAndDrop({.shell = "echo up; exec sleep 600"}, "up");
  bench.Settle();
  ExecBench elsewhere(execd.url());  // another bridge
  const auto info = elsewhere.Get(id);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_FALSE(info->running);
  ASSERT_TRUE(info->outcome && std::holds_alternative<CancelledEnd>(*info->outcome));
  EXPECT_TRUE(std::get<CancelledEnd>(*info->outcome).confirmed);
}

// An empty directory for every exec that was ever cut stayed in the sandbox.
TEST_P(ExecSignal, WhatTellsOfCutExecsStaysBounded) {
  const auto traces = [this] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(execd.tmpdir())) {
      if (entry.path().extension() == ".cut") ++count;
    }
    return count;
  };
  for (int i = 0; i < kKeptTraces + 20; ++i) {
    std::filesystem::create_directory(execd.tmpdir() + "/.sandbox-bridge-" + std::to_string(i) +
                                      ".cut");
  }
  const std::string id = bench.StartAndDrop({.shell = "echo up; exec sleep 600"}, "up");
  bench.Settle();
  if (GetParam().flags.empty()) {
    EXPECT_EQ(traces(), kKeptTraces + 20) << "our own daemon needs none";
  } else {
    EXPECT_LE(traces(), kKeptTraces);
    EXPECT_GE(traces(), kKeptTraces - 1);
  }
  const auto info = bench.Get(id);
  ASSERT_TRUE(info.ok() && info->outcome) << info.status();
  EXPECT_TRUE(std::holds_alternative<CancelledEnd>(*info->outcome));
}

TEST_P(ExecSignal, WhoIsAttachedSeesTheCancellationByAnotherClient) {
  const std::string id =
      bench.StartAndDrop({.shell = "echo up; exec sleep 600", .detach_on_disconnect = true}, "up");
  std::optional<Outcome> outcome;
  RunTask(bench.loop, [&]() -> Task<void> {
    auto stays = co_await bench.client.Attach(bench.context, bench.box, id, 0, 0,
                                              /*kill_on_drop=*/false, absl::Seconds(1));
    EXPECT_TRUE(stays.ok()) << stays.status();
    auto goes = co_await bench.client.Attach(bench.context, bench.box, id, 0, 0,
                                             /*kill_on_drop=*/true, absl::Seconds(1));
    EXPECT_TRUE(goes.ok()) << goes.status();
    if (!stays.ok() || !goes.ok()) co_return;
    goes->reset();
    ExecBatch batch;
    while (!batch.drained && (co_await (*stays)->Next(&batch, absl::Seconds(1))).ok()) {
      if (batch.exited) outcome = batch.exited;
    }
  });
  ASSERT_TRUE(outcome && std::holds_alternative<CancelledEnd>(*outcome));
  bench.Settle();
  EXPECT_EQ(bench.Get(id)->outcome, outcome);
}

// The files go when the exec is over, and with them went who had sent the signal.
TEST_P(ExecSignal, ACancellationThatWasReportedStaysOne) {
  const std::string id = RunTask(bench.loop, [&]() -> Task<std::string> {
    const ExecSpec spec{.shell = "echo up; exec sleep 600"};
    auto exec = co_await bench.client.Start(bench.context, bench.box, spec, absl::Seconds(1));
    if (!exec.ok()) co_return "";
    ExecBatch batch;
    while (batch.outputs.empty() && (co_await (*exec)->Next(&batch, absl::Seconds(1))).ok()) {
    }
    const auto sent =
        co_await bench.client.Signal(bench.context, bench.box, (*exec)->id(), SIGTERM);
    EXPECT_TRUE(sent.ok()) << sent.status();
    while (!batch.drained && (co_await (*exec)->Next(&batch, absl::Seconds(1))).ok()) {
    }
    co_return (*exec)->id();
  });
  bench.Settle();
  const Outcome cancelled = CancelledEnd{true, Signalled{SIGTERM}};
  EXPECT_EQ(bench.Get(id)->outcome, cancelled);
}

TEST_P(ExecSignal, DeathByAnotherSignalThanTheOneSentIsNone) {
  const std::string id = bench.StartAndDrop(
      {.shell = "trap 'kill -KILL $$' TERM; echo up; while :; do sleep 0.05; done",
       .detach_on_disconnect = true},
      "up");
  ASSERT_TRUE(bench.Signal(id, SIGTERM).ok());
  EXPECT_EQ(bench.Attach(id).outcome, Outcome(Signalled{SIGKILL}));
}

}  // namespace
}  // namespace bridge
