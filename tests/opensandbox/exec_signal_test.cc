// SPDX-License-Identifier: Apache-2.0
//
// Signals to a command, on a real daemon process of each kind: they arrive, and the end says who
// sent them.
#include <gmock/gmock.h>
#include <signal.h>

#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/exec_client.h"
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
