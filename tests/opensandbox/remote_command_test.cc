// SPDX-License-Identifier: Apache-2.0
//
// The lossy route on a peer whose every byte the test decides: what a broken, odd or old daemon
// sends must never become an exit that did not happen.
#include "bridge/opensandbox/remote_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "bridge/base/error.h"
#include "tests/opensandbox/exec_fixture.h"
#include "tests/opensandbox/scripted_daemon.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using R = ErrorReason;

ExecResult RunLines(ScriptedDaemon& daemon, ExecSpec spec = {.shell = "x"}) {
  spec.fidelity = ExecFidelity::kLines;
  spec.detach_on_disconnect = true;  // nothing here is there to be killed
  ExecBench bench(daemon.url());
  return bench.Run(std::move(spec));
}

ExecResult RunStream(std::string_view events) {
  ScriptedDaemon daemon([&](RawConnection& peer) { peer.Write(Stream(events)); });
  return RunLines(daemon);
}

TEST(RemoteCommand, AllFramingsOfTheSameEventsAreTheSame) {
  const std::string a = "{\"type\":\"stdout\",\"text\":\"na\xc3\xafve \xf0\x9f\x98\x80\"}";
  const std::string b = "{\"type\":\"error\",\"error\":{\"evalue\":\"7\"}}";
  for (const std::string& body :
       {a + "\n\n" + b + "\n\n", "data: " + a + "\n\ndata: " + b + "\n\n",
        "data:" + a + "\n\ndata:" + b + "\n\n", "data: " + a + "\n\n" + b + "\n\n",
        "event: x\nid: 1\nretry: 5\ndata: " + a + "\n\n: ping\n\n" + b + "\n",
        a + "\r\n\r\n" + b + "\r\n\r\n",
        a + "\n{\"type\":\"ping\",\"text\":\"pong\"}\n{\"type\":\"status\"}\n" + b}) {
    const ExecResult result = RunStream(body);
    EXPECT_EQ(result.out, "na\xc3\xafve \xf0\x9f\x98\x80\n") << body;
    EXPECT_EQ(result.outcome, Outcome(ExitCode{7})) << body;
  }
}

TEST(RemoteCommand, WhatIsNoOutputIsNotShown) {
  const std::string a = "{\"type\":\"stdout\",\"text\":\"a\"}\n\n";
  const ExecResult result =
      RunStream(a +
                ": ping\n\n:\n\nevent: ping\n\n{\"type\":\"ping\",\"text\":\"pong\"}\n\n"
                "{\"type\":\"status\",\"text\":\"x\"}\n\n{\"type\":\"stdout\"}\n\n"
                "{\"type\":\"execution_count\",\"execution_count\":1}\n\n"
                "{\"type\":\"telemetry\",\"x\":1}\n\n" +
                a + kComplete);
  EXPECT_EQ(result.out, "a\na\n");
  EXPECT_EQ(result.outcome, Outcome(ExitCode{0}));
}

// The event right behind the mark counts: without its id a command that is cut cannot be asked for.
TEST(RemoteCommand, AByteOrderMarkInFrontIsNoText) {
  ScriptedDaemon daemon([](RawConnection& peer) {
    peer.Write(kHead + Chunk(std::string("\xef\xbb\xbf") + kInit +
                             R"({"type":"stdout","text":"a"})" + "\n\n"));
  });
  daemon.status_answer = Json(200, R"({"running":false,"exit_code":4,"error":"exit status 4"})");
  const ExecResult result = RunLines(daemon);
  EXPECT_EQ(result.out, "a\n");
  EXPECT_EQ(result.outcome, Outcome(ExitCode{4}));
}

TEST(RemoteCommand, SameUnderEverySplitOfTheBytes) {
  const std::string events =
      std::string(kInit) + "{\"type\":\"stdout\",\"text\":\"\xf0\x9f\x98\x80\"}\n\n" + kComplete;
  for (size_t i = 1; i < events.size(); i += 7) {
    ScriptedDaemon daemon([&](RawConnection& peer) {
      peer.Write(kHead + Chunk(events.substr(0, i)));
      peer.Write(Chunk(events.substr(i)) + "0\r\n\r\n");
    });
    const ExecResult result = RunLines(daemon);
    EXPECT_EQ(result.out, "\xf0\x9f\x98\x80\n") << i;
    EXPECT_EQ(result.outcome, Outcome(ExitCode{0})) << i;
  }
}

TEST(RemoteCommand, SameWhenEveryByteComesAlone) {
  const std::string text = "na\xc3\xafve \xf0\x9f\x98\x80 \xe6\x97\xa5";
  const std::string events =
      std::string(kInit) + "{\"type\":\"stdout\",\"text\":\"" + text + "\"}\n\n" + kComplete;
  ScriptedDaemon daemon([&](RawConnection& peer) {
    std::string body;
    for (const char byte : events) body += Chunk(std::string(1, byte));
    peer.Write(kHead);
    for (const char byte : body + "0\r\n\r\n") peer.Write(std::string(1, byte));
  });
  const ExecResult result = RunLines(daemon);
  EXPECT_EQ(result.out, text + "\n");
  EXPECT_EQ(result.outcome, Outcome(ExitCode{0}));
}

// What a daemon says of a\n\nb\n\n\nc\n: an empty line is an event of its own.
TEST(RemoteCommand, EmptyLinesStay) {
  std::string events;
  for (const char* text : {"a", "\\n", "b", "\\n", "\\n", "c"}) {
    events += std::string("{\"type\":\"stdout\",\"text\":\"") + text + "\"}\n\n";
  }
  EXPECT_EQ(RunStream(events + kComplete).out, "a\n\nb\n\n\nc\n");
}

TEST(RemoteCommand, EndOfStreamIsNoExit) {
  ScriptedDaemon daemon([](RawConnection& peer) {
    peer.Write(Stream("{\"type\":\"stdout\",\"text\":\"part\"}\n\n"));
  });
  const ExecResult result = RunLines(daemon);
  EXPECT_EQ(result.out, "part\n");
  EXPECT_EQ(daemon.posts(), 1);
  ASSERT_TRUE(result.outcome.has_value());
  EXPECT_TRUE(std::holds_alternative<Lost>(*result.outcome));
  EXPECT_FALSE(result.ran_for.has_value());
  EXPECT_TRUE(result.last.lossy);
}

// The time was counted from the daemon's answer on, and to when somebody asked.
TEST(RemoteCommand, ATimeHoldsTheWaitForTheDaemonsAnswer) {
  constexpr absl::Duration kHeldBack = absl::Milliseconds(40);
  absl::Notification never;
  ScriptedDaemon daemon([&](RawConnection& peer) {
    never.WaitForNotificationWithTimeout(kHeldBack);  // the command runs meanwhile
    peer.Write(Stream(kComplete));
  });
  const ExecResult result = RunLines(daemon);
  ASSERT_TRUE(result.ran_for.has_value());
  EXPECT_GE(*result.ran_for, kHeldBack);
}

// What came before the end is told, half a line is not, and the end is nobody's.
TEST(RemoteCommand, EndOfStreamInsideAnEventIsNoExit) {
  std::string lines, printed;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = std::to_string(i) + " abcd";
    lines += "{\"type\":\"stdout\",\"text\":\"" + text + "\"}\n\n";
    printed += text + "\n";
  }
  const ExecResult result = RunStream(lines + "{\"type\":\"stdout\",\"text\":\"hal");
  EXPECT_TRUE(result.out == printed) << result.out.size() << " of " << printed.size();
  ASSERT_TRUE(result.outcome.has_value());
  EXPECT_TRUE(std::holds_alternative<Lost>(*result.outcome));
  EXPECT_TRUE(result.last.lossy);
}

TEST(RemoteCommand, TheStatusRecordTellsWhatABrokenStreamDidNot) {
  ScriptedDaemon daemon([](RawConnection& peer) {
    peer.Write(kHead + Chunk(kInit) + Chunk("{\"type\":\"stdout\",\"text\":\"part\"}\n\n") +
               "ff\r\n{\"type\":\"stdo");
    peer.Reset();
  });
  daemon.status_answer =
      Json(200, "{\"running\":false,\"exit_code\":4,\"error\":\"exit status 4\"}");
  const ExecResult result = RunLines(daemon);
  EXPECT_EQ(result.out, "part\n") << "half a line is not output";
  EXPECT_EQ(result.outcome, Outcome(ExitCode{4}));
  EXPECT_TRUE(result.last.lossy);
  EXPECT_EQ(daemon.posts(), 1);
}

TEST(RemoteCommand, CommandThatRunsOnUnseenIsLostAndSaysSo) {
  ScriptedDaemon daemon(
      [](RawConnection& peer) { peer.Write(kHead + Chunk(kInit) + "0\r\n\r\n"); });
  daemon.status_answer = Json(200, "{\"running\":true}");
  const ExecResult result = RunLines(daemon);
  ASSERT_TRUE(result.outcome && std::holds_alternative<Lost>(*result.outcome));
  EXPECT_TRUE(std::get<Lost>(*result.outcome).maybe_running);
}

TEST(RemoteCommand, EmptyStreamIsAFailureAndNotRepeated) {
  ScriptedDaemon daemon([](RawConnection& peer) { peer.Write(std::string(kHead) + "0\r\n\r\n"); });
  const ExecResult result = RunLines(daemon);
  EXPECT_FALSE(result.status.ok());
  EXPECT_FALSE(result.outcome.has_value());
  EXPECT_EQ(daemon.posts(), 1);
}

TEST(RemoteCommand, RefusalsAreTypedAndQuoteNothing) {
  struct Case {
    std::string answer;
    R reason;
  };
  for (const Case& c :
       {Case{Json(400, "{\"code\":\"INVALID_REQUEST_BODY\",\"message\":\"SECRET\"}"),
             R::ERROR_REASON_UPSTREAM_REJECTED},
        Case{Json(401, "{\"error\":\"Unauthorized: SECRET\"}"),
             R::ERROR_REASON_UPSTREAM_UNAUTHENTICATED},
        Case{Json(500, "{\"code\":\"RUNTIME_ERROR\",\"message\":\"SECRET\"}"),
             R::ERROR_REASON_UPSTREAM_FAILED},
        Case{Json(503, "<html>SECRET</html>"), R::ERROR_REASON_SANDBOX_UNREACHABLE},
        Case{Json(200, "{\"code\":\"RUNTIME_ERROR\",\"message\":\"SECRET\"}"),
             R::ERROR_REASON_UPSTREAM_FAILED},
        Case{"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nSECRET",
             R::ERROR_REASON_UPSTREAM_PROTOCOL}}) {
    ScriptedDaemon daemon([&](RawConnection& peer) { peer.Write(c.answer); });
    const ExecResult result = RunLines(daemon);
    EXPECT_EQ(ReasonOf(result.status), c.reason) << c.answer << "\n" << result.status;
    EXPECT_EQ(result.status.ToString().find("SECRET"), std::string::npos) << result.status;
    EXPECT_FALSE(result.outcome.has_value());
    EXPECT_EQ(daemon.posts(), 1);
  }
}

TEST(RemoteCommand, FailureInMidStreamIsNoExit) {
  const ExecResult result = RunStream("{\"code\":\"RUNTIME_ERROR\",\"message\":\"x\"}");
  ASSERT_TRUE(result.outcome.has_value());
  EXPECT_TRUE(std::holds_alternative<Lost>(*result.outcome));
}

TEST(RemoteCommand, NothingCountsAfterTheTerminalEvent) {
  ScriptedDaemon daemon([](RawConnection& peer) {
    peer.Write(kHead + Chunk(kInit) + Chunk(kComplete) +
               Chunk("{\"type\":\"stdout\",\"text\":\"late\"}\n\n"));
    peer.AwaitClose();  // stays open: the end must not be waited for
  });
  const absl::Time start = absl::Now();
  const ExecResult result = RunLines(daemon);
  EXPECT_EQ(result.outcome, Outcome(ExitCode{0}));
  EXPECT_EQ(result.out, "");
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(RemoteCommand, OutputBeforeTheIdIsKept) {
  ScriptedDaemon daemon([](RawConnection& peer) {
    peer.Write(kHead + Chunk("{\"type\":\"stdout\",\"text\":\"early\"}\n\n") + Chunk(kInit) +
               Chunk(kComplete) + "0\r\n\r\n");
  });
  EXPECT_EQ(RunLines(daemon).out, "early\n");
}

TEST(RemoteCommand, TimeoutTravelsInWholeMilliseconds) {
  for (const auto& [timeout, text] : {std::pair{absl::Seconds(60), "\"timeout\":60000"},
                                      std::pair{absl::Milliseconds(2500), "\"timeout\":2500"},
                                      std::pair{absl::Milliseconds(50), "\"timeout\":50"}}) {
    ScriptedDaemon daemon([](RawConnection& peer) { peer.Write(Stream(kComplete)); });
    RunLines(daemon, {.shell = "x", .timeout = timeout});
    EXPECT_THAT(daemon.post_body(), HasSubstr(text));
  }
  ScriptedDaemon daemon([](RawConnection& peer) { peer.Write(Stream(kComplete)); });
  RunLines(daemon);
  EXPECT_EQ(daemon.post_body().find("timeout"), std::string::npos);
}

TEST(RemoteCommand, ErrorValuesThatAreNoNumbers) {
  for (const char* value : {"chdir /x: no such file or directory", "", "999999999999"}) {
    const ExecResult result =
        RunStream(std::string("{\"type\":\"error\",\"error\":{\"evalue\":\"") + value + "\"}}\n\n");
    ASSERT_TRUE(result.outcome.has_value()) << value;
    EXPECT_FALSE(std::holds_alternative<ExitCode>(*result.outcome)) << value;
  }
  EXPECT_EQ(RunStream("{\"type\":\"error\",\"error\":{\"evalue\":\" 42 \"}}\n\n").outcome,
            Outcome(ExitCode{42}));
  EXPECT_FALSE(std::holds_alternative<ExitCode>(*RunStream("{\"type\":\"error\"}\n\n").outcome));
}

TEST(RemoteCommand, ALineOfNineMegabytesArrives) {
  const std::string line(9 << 20, 'x');
  const ExecResult result =
      RunStream("{\"type\":\"stdout\",\"text\":\"" + line + "\"}\n\n" + kComplete);
  EXPECT_EQ(result.out.size(), line.size() + 1);
}

TEST(RemoteCommand, ConnectionThatCannotBeMadeIsRetriedOnceWithWhatIsTrueNow) {
  ScriptedDaemon daemon([](RawConnection& peer) { peer.Write(Stream(kComplete)); });
  ClosedPort closed;
  ExecBench bench("http://127.0.0.1:" + std::to_string(closed.port()));
  const ExecResult result = bench.Run({.shell = "x", .fidelity = ExecFidelity::kLines});
  EXPECT_EQ(ReasonOf(result.status), R::ERROR_REASON_SANDBOX_UNREACHABLE) << result.status;
  EXPECT_EQ(bench.directory.resolves(), 2);
}

// A stock daemon tells a command's id some moments before it has a status for it.
TEST(RemoteCommand, AStatusThatIsNotThereYet) {
  int asked = 0;
  RawServer daemon([&asked](RawConnection& peer) {
    while (!peer.ReadHead().empty()) {
      peer.Write(++asked < 3 ? Json(404, "{}") : Json(200, "{\"running\":true}"));
    }
  });
  ExecBench bench(daemon.Url(""));
  const auto status = [&bench] {
    return RunTask(bench.loop, [&]() -> Task<absl::StatusOr<CommandStatus>> {
      co_return co_await FetchCommandStatus(bench.daemon, CallContext(), bench.directory.daemon(),
                                            "0123");
    });
  };
  const auto running = status();
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_TRUE(running->running);
  asked = -1000;  // never there
  EXPECT_EQ(ReasonOf(status().status()), R::ERROR_REASON_PROCESS_NOT_FOUND);
  EXPECT_LE(asked, -990);
}

}  // namespace
}  // namespace bridge
