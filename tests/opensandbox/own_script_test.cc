// SPDX-License-Identifier: Apache-2.0
//
// Scripts of the bridge's own, which answer many calls: whose failure their failure is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semaphore>
#include <string>

#include "bridge/base/clock.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/remote_command.h"
#include "tests/fakes/fake_time.h"
#include "tests/opensandbox/exec_fixture.h"
#include "tests/opensandbox/scripted_daemon.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using R = ErrorReason;

// The proxy of OpenSandbox server 1.1.1, when the container behind it has ended, and when it cannot
// reach the daemon.
class ServersAnswer : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
    Proxy, ServersAnswer,
    ::testing::Values(
        R"({"code":"DOCKER::NETWORK_MODE_ENDPOINT_UNAVAILABLE","message":"no IP address"})",
        R"({"code":"BACKEND_CONNECTION_FAILED","message":"Could not connect"})"));

TEST_P(ServersAnswer, IsNotTakenForTheDaemons) {
  ScriptedDaemon daemon([](RawConnection& peer) { peer.Write(Json(500, GetParam())); });
  daemon.status_answer = Json(500, GetParam());
  ExecBench bench(daemon.url());
  bench.directory.SetExplanation(
      MakeError(R::ERROR_REASON_SANDBOX_NOT_RUNNING, "ended", {.metadata = {{"state", "Failed"}}}));
  const auto start = [&bench] {
    return RunTask(bench.loop, [&]() -> Task<absl::Status> {
      const auto code = co_await RunScript(bench.daemon, CallContext(), bench.directory.daemon(),
                                           "true", nullptr);
      co_return code.status();
    });
  };
  const auto status = [&bench] {
    return RunTask(bench.loop, [&]() -> Task<absl::Status> {
      const auto got = co_await FetchCommandStatus(bench.daemon, CallContext(),
                                                   bench.directory.daemon(), "0123");
      co_return got.status();
    });
  };
  EXPECT_EQ(ReasonOf(start()), R::ERROR_REASON_UPSTREAM_FAILED) << "nothing lies between";
  EXPECT_EQ(ReasonOf(status()), R::ERROR_REASON_UPSTREAM_FAILED);
  bench.directory.daemon()->endpoint.through_server = true;
  EXPECT_EQ(ReasonOf(start()), R::ERROR_REASON_SANDBOX_NOT_RUNNING);
  EXPECT_EQ(ReasonOf(status()), R::ERROR_REASON_SANDBOX_NOT_RUNNING);
}

TEST(ServersAnswer, TheDaemonsOwnFailureStaysItsOwn) {
  ScriptedDaemon daemon([](RawConnection& peer) {
    peer.Write(Json(500, R"({"code":"RUNTIME_ERROR","message":"no spool"})"));
  });
  ExecBench bench(daemon.url());
  bench.directory.daemon()->endpoint.through_server = true;
  bench.directory.SetExplanation(MakeError(R::ERROR_REASON_SANDBOX_NOT_FOUND, "not asked for"));
  const auto code = RunTask(bench.loop, [&]() -> Task<absl::StatusOr<int>> {
    co_return co_await RunScript(bench.daemon, CallContext(), bench.directory.daemon(), "true",
                                 nullptr);
  });
  EXPECT_EQ(ReasonOf(code.status()), R::ERROR_REASON_UPSTREAM_FAILED);
}

// A script of the bridge's own, in front of a daemon whose answer `passes` some time on a clock of
// its own before it comes.
class OwnScript : public ::testing::Test {
 protected:
  absl::StatusOr<int> Run(absl::Duration passes, std::string answer) {
    ScriptedDaemon daemon([&](RawConnection& peer) {
      clock_.Advance(passes);
      peer.Write(answer);
      peer.AwaitClose();
    });
    EventLoop loop(clock_);
    HttpClient http(loop);
    FixedDirectory directory(daemon.url());
    directory.SetExplanation(explanation_);
    DaemonClient client(http, directory);
    return RunTask(loop, [&] {
      return RunScript(client, CallContext(), directory.daemon(), "true", nullptr, limit_);
    });
  }

  absl::Duration limit_ = kScriptLimit;
  FakeClock clock_;
  absl::Status explanation_;
};

constexpr char kKilled[] =
    "{\"type\":\"error\",\"error\":{\"evalue\":\"-1\",\"traceback\":[\"signal: killed\"]}}\n\n";

// Was UPSTREAM_FAILED, "could not be run".
TEST_F(OwnScript, ThatTheDaemonsTimerEndedIsATimeout) {
  for (const char* killed : {kKilled, "{\"type\":\"error\",\"error\":{\"evalue\":\"-1\"}}\n\n"}) {
    const auto code = Run(absl::Seconds(10), Stream(killed));
    EXPECT_EQ(ReasonOf(code.status()), R::ERROR_REASON_UPSTREAM_TIMEOUT) << code.status();
    EXPECT_THAT(std::string(code.status().message()), HasSubstr("within 10s"));
    EXPECT_THAT(std::string(code.status().message()), HasSubstr("Try again"));
    EXPECT_EQ(MetadataOf(code.status())["phase"], "answer");
  }
}

TEST_F(OwnScript, ThatSomebodyKilledEarlierIsNoTimeout) {
  const auto code = Run(absl::Seconds(9), Stream(kKilled));
  EXPECT_EQ(ReasonOf(code.status()), R::ERROR_REASON_UPSTREAM_FAILED) << code.status();
  EXPECT_THAT(std::string(code.status().message()), HasSubstr("was killed"));
}

TEST_F(OwnScript, MayHaveMoreTime) {
  limit_ = absl::Seconds(60);
  EXPECT_EQ(ReasonOf(Run(absl::Seconds(59), Stream(kKilled)).status()),
            R::ERROR_REASON_UPSTREAM_FAILED);
  const auto code = Run(absl::Seconds(60), Stream(kKilled));
  EXPECT_EQ(ReasonOf(code.status()), R::ERROR_REASON_UPSTREAM_TIMEOUT) << code.status();
  EXPECT_THAT(std::string(code.status().message()), HasSubstr("within 1m"));
}

TEST_F(OwnScript, ThatCannotBeRunSaysSoHoweverLongItTook) {
  const auto code =
      Run(absl::Seconds(12),
          Stream("{\"type\":\"error\",\"error\":{\"evalue\":\"fork/exec: no such file or "
                 "directory\"}}\n\n"));
  EXPECT_EQ(ReasonOf(code.status()), R::ERROR_REASON_UPSTREAM_FAILED) << code.status();
}

TEST_F(OwnScript, LateButDoneIsDone) {
  const auto code = Run(absl::Seconds(11), Stream(kComplete));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
}

// Waited for ever, though it is said to be bounded.
TEST_F(OwnScript, OfADaemonThatKeepsNoTimeIsGivenUp) {
  explanation_ = MakeError(R::ERROR_REASON_UPSTREAM_TIMEOUT, "explained");
  for (const std::string& answer : {std::string(), kHead + Chunk(kInit)}) {
    const auto code = Run(absl::Seconds(15), answer);
    EXPECT_EQ(code.status(), explanation_);
  }
}

// The bridge's memory was the daemon's to fill.
TEST(RemoteCommand, OutputWithoutAnIdOrAnEndIsNotGatheredForEver) {
  const std::string line =
      "{\"type\":\"stdout\",\"text\":\"" + std::string(1 << 20, 'x') + "\"}\n\n";
  const auto run = [&line](bool named) {
    ScriptedDaemon daemon([&](RawConnection& peer) {
      bool open = peer.Write(kHead + (named ? Chunk(kInit) : ""));
      while (open) open = peer.Write(Chunk(line));
    });
    ExecBench bench(daemon.url());
    std::vector<std::string> lines;
    return RunTask(bench.loop, [&] {
      return RunScript(bench.daemon, CallContext(), bench.directory.daemon(), "true", &lines);
    });
  };
  for (const bool named : {false, true}) {
    const absl::Status status = run(named).status();
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_UPSTREAM_PROTOCOL) << status;
  }
}

// Ended the whole bridge by an assertion.
TEST(RemoteCommand, WhatFollowsAFailureIsNotRead) {
  ScriptedDaemon daemon([](RawConnection& peer) {
    peer.Write(kHead + Chunk("{\"code\":\"RUNTIME_ERROR\"}\n\n{\"type\":\"ping\"}\n\n") +
               Chunk("{\"type\":\"ping\"}\n\n") + "0\r\n\r\n");
  });
  ExecBench bench(daemon.url());
  const absl::Status status = RunTask(bench.loop, [&]() -> Task<absl::Status> {
    RemoteCommand command(bench.daemon, CallContext(), bench.directory.daemon(), CommandRequest());
    co_return co_await command.AwaitId();
  });
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_UPSTREAM_FAILED) << status;
  EXPECT_EQ(MetadataOf(status)["upstream_code"], "RUNTIME_ERROR");
}

// Half an event is no fault of a daemon whose stream was cut in it.
TEST(RemoteCommand, ACutInsideAnEventIsACut) {
  for (const std::string& begin : {std::string(), Chunk(kInit)}) {
    ScriptedDaemon daemon(
        [&begin](RawConnection& peer) { peer.Write(kHead + begin + Chunk("{\"type\":\"stdo")); });
    ExecBench bench(daemon.url());
    const absl::StatusOr<int> code = RunTask(bench.loop, [&] {
      return RunScript(bench.daemon, CallContext(), bench.directory.daemon(), "true", nullptr);
    });
    EXPECT_EQ(code.status().code(), absl::StatusCode::kUnavailable) << code.status();
  }
}

// Was CANCELLED, though nobody had cancelled anything.
TEST(RemoteCommand, SilenceBeforeTheIdIsToldAsWhatItIs) {
  FakeClock clock;
  std::binary_semaphore spoke{0};
  ScriptedDaemon daemon([&spoke](RawConnection& peer) {
    peer.Write(kHead + Chunk("{\"type\":\"ping\"}\n\n"));
    spoke.release();
    peer.AwaitClose();
  });
  EventLoop loop(clock);
  HttpClient http(loop);
  FixedDirectory directory(daemon.url());
  DaemonClient client(http, directory);
  const auto start = [&] {
    FakeTimeTask<absl::Status> task(
        clock, loop,
        [&]() -> Task<absl::Status> {
          RemoteCommand command(client, CallContext(), directory.daemon(), CommandRequest());
          co_return co_await command.AwaitId();
        },
        absl::Seconds(1));
    spoke.acquire();
    return task.Finish();
  };
  absl::Status status = start();
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_SANDBOX_UNREACHABLE) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("silent"));
  directory.SetExplanation(MakeError(R::ERROR_REASON_SANDBOX_NOT_FOUND, "gone"));
  status = start();
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_SANDBOX_NOT_FOUND) << status;
}

}  // namespace
}  // namespace bridge
