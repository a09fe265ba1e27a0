// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/command_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using Type = CommandEvent::Type;
using Kind = SpawnFailed::Kind;

CommandEvent Parse(std::string_view json) {
  CommandEvent event;
  event.text = "left over";
  EXPECT_TRUE(ParseCommandEvent(json, &event).ok()) << json;
  return event;
}

// The texts are as recorded from a real execd.
TEST(CommandEvent, ReadsRecordedEvents) {
  CommandEvent e = Parse(
      R"({"type":"init","text":"23bd04ba0d254ba0a40e9d5f37f6ff8f","timestamp":1795963032538})");
  EXPECT_EQ(e.type, Type::kInit);
  EXPECT_EQ(e.text, "23bd04ba0d254ba0a40e9d5f37f6ff8f");
  e = Parse(R"({"type":"stdout","text":"hello","timestamp":1765000000105})");
  EXPECT_EQ(e.type, Type::kStdout);
  EXPECT_EQ(e.text, "hello");
  e = Parse(R"({"type":"stderr","text":"\n","timestamp":1})");
  EXPECT_EQ(e.type, Type::kStderr);
  EXPECT_EQ(e.text, "\n");
  EXPECT_EQ(Parse(R"({"type":"ping","text":"pong","timestamp":1})").type, Type::kPing);
  EXPECT_EQ(Parse(R"({"type":"execution_complete","execution_time":7,"timestamp":1})").type,
            Type::kComplete);
  e = Parse(R"({"type":"error","timestamp":1,"error":{"ename":"CommandExecError","evalue":"3",)"
            R"("traceback":["exit status 3"]}})");
  EXPECT_EQ(e.type, Type::kError);
  EXPECT_EQ(e.error_value, "3");
  EXPECT_EQ(e.error_trace, "exit status 3");
}

TEST(CommandEvent, MidStreamFailureHasNoType) {
  const CommandEvent e = Parse(R"({"code":"RUNTIME_ERROR","message":"boom"})");
  EXPECT_EQ(e.type, Type::kFailure);
  EXPECT_EQ(e.code, "RUNTIME_ERROR");
  EXPECT_EQ(e.text, "boom");
}

TEST(CommandEvent, WhatIsNotKnownIsIgnored) {
  EXPECT_EQ(Parse(R"({"type":"telemetry","x":{"y":[1,2,{"z":null}]}})").type, Type::kOther);
  EXPECT_EQ(Parse(R"({"type":"execution_count","execution_count":1})").type, Type::kOther);
  EXPECT_EQ(Parse(R"({})").type, Type::kOther);
  const CommandEvent e =
      Parse(R"({"extra":[{"type":"stdout"}],"type":"stdout","error":{"a":{"evalue":"9"}}})");
  EXPECT_EQ(e.type, Type::kStdout);
  EXPECT_EQ(e.text, "");
  EXPECT_EQ(e.error_value, "");
}

TEST(CommandEvent, KeepsEveryCharacter) {
  EXPECT_EQ(
      Parse("{\"type\":\"stdout\",\"text\":\"\\u003ca\\u0000\\ud83d\\ude00 \xc2\x85\\\\\"}").text,
      std::string("<a\0\xf0\x9f\x98\x80 \xc2\x85\\", 11));
}

TEST(CommandEvent, RefusesWhatIsNotAnObject) {
  CommandEvent event;
  for (const char* bad :
       {"", "[]", "null", "{", "{\"type\":\"stdout\"", "boom", "{\"type\":\"\\u12\"}"}) {
    const absl::Status status = ParseCommandEvent(bad, &event);
    EXPECT_EQ(ReasonOf(status), ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL) << bad;
    EXPECT_EQ(status.message().find("boom"), absl::string_view::npos);
  }
}

TEST(OutcomeOfError, ExitCodes) {
  EXPECT_EQ(OutcomeOfError("3", "exit status 3"), Outcome(ExitCode{3}));
  EXPECT_EQ(OutcomeOfError("255", ""), Outcome(ExitCode{255}));
  EXPECT_EQ(OutcomeOfError(" 42 ", ""), Outcome(ExitCode{42}));
  EXPECT_EQ(OutcomeOfError("exit status 42", ""), Outcome(ExitCode{42}));
}

TEST(OutcomeOfError, Signals) {
  EXPECT_EQ(OutcomeOfError("-1", "signal: killed"), Outcome(Signalled{9, false}));
  EXPECT_EQ(OutcomeOfError("-1", "signal: segmentation fault (core dumped)"),
            Outcome(Signalled{11, true}));
  EXPECT_EQ(OutcomeOfError("-1", "signal: signal 35"), Outcome(Signalled{35, false}));
  EXPECT_EQ(OutcomeOfError("-1", "signal: signal 99"), Outcome(Signalled{0, false}));
  EXPECT_EQ(OutcomeOfError("-1", ""), Outcome(Signalled{0, false}));
  EXPECT_EQ(OutcomeOfError("-1", "signal: unheard of"), Outcome(Signalled{0, false}));
}

TEST(OutcomeOfError, NeverInventsAnExit) {
  for (const char* value : {"999999999999", "0", "256", "70000"}) {
    EXPECT_FALSE(std::holds_alternative<ExitCode>(OutcomeOfError(value, ""))) << value;
  }
  EXPECT_TRUE(std::holds_alternative<SpawnFailed>(OutcomeOfError("", "")));
}

TEST(OutcomeOfError, FailedStarts) {
  const auto kind = [](std::string_view value) {
    const Outcome outcome = OutcomeOfError(value, "");
    const auto* failed = std::get_if<SpawnFailed>(&outcome);
    return failed != nullptr ? failed->kind : Kind::kBadUser;
  };
  EXPECT_EQ(kind("fork/exec /usr/bin/bash: argument list too long"), Kind::kArgumentsTooLong);
  EXPECT_EQ(kind("fork/exec /usr/bin/bash: resource temporarily unavailable"), Kind::kNoRoom);
  EXPECT_EQ(kind("fork/exec /usr/bin/bash: cannot allocate memory"), Kind::kNoRoom);
  EXPECT_EQ(kind("exec: \"nosuch\": executable file not found in $PATH"), Kind::kNotFound);
  EXPECT_EQ(kind("fork/exec /nope: no such file or directory"), Kind::kNotFound);
  EXPECT_EQ(kind("chdir /x: no such file or directory"), Kind::kBadCwd);
  EXPECT_EQ(kind("fork/exec /x: permission denied"), Kind::kNotExecutable);
}

TEST(OutcomeOfError, AFailedStartDoesNotQuoteTheCommand) {
  const Outcome outcome = OutcomeOfError("starting SECRET argument: out of memory", "");
  EXPECT_EQ(std::get<SpawnFailed>(outcome).message, "out of memory");
}

TEST(CommandStatus, ReadsRecordedRecords) {
  auto status = ParseCommandStatus(
      R"({"id":"x","content":"sleep 1","running":true,"started_at":"2026-11-29T12:00:00.5Z"})");
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(status->running);
  EXPECT_FALSE(status->exit_code.has_value());
  EXPECT_EQ(status->started_at, absl::FromUnixMillis(1795953600500));
  status =
      ParseCommandStatus(R"({"id":"x","running":false,"exit_code":-1,"error":"signal: killed",)"
                         R"("started_at":"2026-11-29T12:00:00Z","finished_at":null})");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(OutcomeOfStatus(*status), Outcome(Signalled{9, false}));
  status = ParseCommandStatus(R"({"running":false,"exit_code":0})");
  EXPECT_EQ(OutcomeOfStatus(*status), Outcome(ExitCode{0}));
  status = ParseCommandStatus(R"({"running":false})");
  EXPECT_TRUE(std::holds_alternative<Lost>(OutcomeOfStatus(*status)));
  EXPECT_TRUE(std::get<Lost>(OutcomeOfStatus({.running = true})).maybe_running);
  // Beyond what an exit status can be; 2^32 was exit 0.
  for (const char* code : {"256", "4294967296", "18446744073709551615"}) {
    status = ParseCommandStatus(std::string(R"({"running":false,"exit_code":)") + code + "}");
    EXPECT_TRUE(std::holds_alternative<Lost>(OutcomeOfStatus(*status))) << code;
  }
  for (const char* bad : {"", "[]", "{}", R"({"running":"yes"})", "<html>"}) {
    EXPECT_EQ(ReasonOf(ParseCommandStatus(bad).status()),
              ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL);
  }
}

TEST(CommandRequest, SendsIntegersAndOnlyWhatIsSet) {
  EXPECT_EQ(CommandRequestJson({.command = "true"}), R"({"command":"true"})");
  EXPECT_EQ(CommandRequestJson({.command = "a\n'\"",
                                .env = {{"A", "x y"}, {"E", ""}},
                                .uid = 0,
                                .gid = 0,
                                .timeout = absl::Milliseconds(2500)}),
            R"({"command":"a\n'\"","envs":{"A":"x y","E":""},"gid":0,"timeout":2500,"uid":0})");
  EXPECT_EQ(CommandRequestJson({.command = "a", .timeout = absl::Nanoseconds(1)}),
            R"({"command":"a","timeout":1})");
}

}  // namespace
}  // namespace bridge
