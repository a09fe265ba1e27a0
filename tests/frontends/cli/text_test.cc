// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/text.h"

#include <gtest/gtest.h>

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::Outcome;

TEST(ParseDuration, TakesUnitsAndTheirSums) {
  EXPECT_EQ(*ParseDuration("30s"), absl::Seconds(30));
  EXPECT_EQ(*ParseDuration("30"), absl::Seconds(30));
  EXPECT_EQ(*ParseDuration("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("1.5h"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("2d"), absl::Hours(48));
  EXPECT_EQ(*ParseDuration("0.05s"), absl::Milliseconds(50));
}

TEST(ParseDuration, RefusesTheRest) {
  for (const char* text : {"", "s", "-1s", "0", "0s", "1y", "1 s", "30S", "1e3s", "nan", "inf",
                           "5s3", "99999d", "0x10", "1..5s", "+3s"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(DurationText, HasAtMostTwoUnits) {
  EXPECT_EQ(DurationText(0), "0ms");
  EXPECT_EQ(DurationText(0.0421), "42ms");
  EXPECT_EQ(DurationText(1.5), "1.5s");
  EXPECT_EQ(DurationText(59), "59s");
  EXPECT_EQ(DurationText(60), "1m");
  EXPECT_EQ(DurationText(190), "3m10s");
  EXPECT_EQ(DurationText(7200), "2h");
  EXPECT_EQ(DurationText(86400 + 3 * 3600 + 59), "1d3h");
  EXPECT_EQ(DurationText(-2), "-2s");
}

TEST(Printable, LeavesTextAndShowsControls) {
  EXPECT_EQ(Printable("plain é 日 \U0001F600"), "plain é 日 \U0001F600");
  EXPECT_EQ(Printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(Printable("a\nb\tc\x7f"), "a\\nb\\x09c\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b1m");  // CSI as one C1 control
  EXPECT_EQ(Printable("a\xff"), "a\\xff");
  EXPECT_EQ(Printable("\xe6\x97"), "\\xe6\\x97");  // cut in the middle
  EXPECT_EQ(Printable(std::string("\0x", 2)), "\\x00x");
}

TEST(Table, AlignsColumnsWithoutTrailingSpace) {
  EXPECT_EQ(Table({{"A", "B", "C"}, {"long", "b", ""}, {"x", "yy", "z"}}),
            "A     B   C\n"
            "long  b   \n"
            "x     yy  z\n");
  EXPECT_EQ(Table({}), "");
}

Outcome WithSignal(int number, const std::string& name) {
  Outcome outcome;
  outcome.mutable_signal()->set_number(number);
  outcome.mutable_signal()->set_name(name);
  return outcome;
}

TEST(Outcome, IsTheCommandsOwnCode) {
  Outcome outcome;
  outcome.set_exit_code(0);
  EXPECT_EQ(OutcomeExitCode(outcome), 0);
  outcome.set_exit_code(255);
  EXPECT_EQ(OutcomeExitCode(outcome), 255);
  EXPECT_EQ(OutcomeText(outcome), "ended with exit code 255");
}

TEST(Outcome, IsTheShellsCodeForSignals) {
  EXPECT_EQ(OutcomeExitCode(WithSignal(9, "SIGKILL")), 137);
  EXPECT_EQ(OutcomeExitCode(WithSignal(11, "SIGSEGV")), 139);
  EXPECT_EQ(OutcomeText(WithSignal(9, "SIGKILL")), "was killed by SIGKILL");
  EXPECT_EQ(OutcomeText(WithSignal(40, "")), "was killed by signal 40");
  // The upstream says "a signal" and no more: a code above 128 that names none.
  EXPECT_EQ(OutcomeExitCode(WithSignal(0, "")), 128);
  EXPECT_EQ(OutcomeText(WithSignal(0, "")), "was killed by a signal");
  Outcome core = WithSignal(11, "SIGSEGV");
  core.mutable_signal()->set_core(true);
  EXPECT_EQ(OutcomeText(core), "was killed by SIGSEGV (core dumped)");
}

TEST(Outcome, TimedOut) {
  Outcome outcome;
  outcome.mutable_timed_out()->mutable_after()->set_seconds(2);
  EXPECT_EQ(OutcomeExitCode(outcome), 124);
  EXPECT_EQ(OutcomeText(outcome), "timed out after 2s and was killed");
}

TEST(Outcome, SpawnFailures) {
  Outcome outcome;
  auto& failed = *outcome.mutable_spawn_failed();
  failed.set_kind(Outcome::SpawnFailed::KIND_NOT_FOUND);
  failed.set_message("nosuch");
  EXPECT_EQ(OutcomeExitCode(outcome), 127);
  EXPECT_EQ(OutcomeText(outcome), "could not be started: no such program: nosuch");
  for (const auto kind :
       {Outcome::SpawnFailed::KIND_NOT_EXECUTABLE, Outcome::SpawnFailed::KIND_ARGUMENTS_TOO_LONG,
        Outcome::SpawnFailed::KIND_BAD_CWD, Outcome::SpawnFailed::KIND_BAD_USER,
        Outcome::SpawnFailed::KIND_OTHER, Outcome::SpawnFailed::KIND_UNSPECIFIED}) {
    failed.set_kind(kind);
    EXPECT_EQ(OutcomeExitCode(outcome), 126) << kind;
  }
}

TEST(Outcome, WhatIsNotKnownIsNoExitCodeOfTheCommand) {
  Outcome outcome;
  EXPECT_EQ(OutcomeExitCode(outcome), 125);
  outcome.mutable_lost()->set_reason("the stream broke");
  outcome.mutable_lost()->set_maybe_running(true);
  EXPECT_EQ(OutcomeExitCode(outcome), 125);
  EXPECT_EQ(OutcomeText(outcome),
            "ended in a way that is not known: the stream broke; it may still run");
  outcome.mutable_cancelled();
  EXPECT_EQ(OutcomeExitCode(outcome), 125);
  EXPECT_EQ(OutcomeText(outcome), "was cancelled; its end could not be confirmed");
}

TEST(Outcome, CancelledHasWhatIsKnownOfTheEnd) {
  Outcome outcome;
  outcome.mutable_cancelled()->set_confirmed(true);
  outcome.mutable_cancelled()->mutable_signal()->set_number(9);
  outcome.mutable_cancelled()->mutable_signal()->set_name("SIGKILL");
  EXPECT_EQ(OutcomeExitCode(outcome), 137);
  EXPECT_EQ(OutcomeText(outcome), "was killed by SIGKILL; it is gone");
  outcome.mutable_cancelled()->set_exit_code(5);
  EXPECT_EQ(OutcomeExitCode(outcome), 5);
  EXPECT_EQ(OutcomeText(outcome), "was cancelled, exit code 5; it is gone");
}

}  // namespace
}  // namespace bridge::cli
