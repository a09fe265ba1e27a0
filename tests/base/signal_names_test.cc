// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/signal_names.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace bridge {
namespace {

TEST(SignalNames, AgreeWithLinux) {
  const struct {
    const char* name;
    int number;
  } kCases[] = {{"HUP", SIGHUP},       {"INT", SIGINT},       {"QUIT", SIGQUIT}, {"ABRT", SIGABRT},
                {"KILL", SIGKILL},     {"USR1", SIGUSR1},     {"USR2", SIGUSR2}, {"PIPE", SIGPIPE},
                {"ALRM", SIGALRM},     {"TERM", SIGTERM},     {"CHLD", SIGCHLD}, {"CONT", SIGCONT},
                {"STOP", SIGSTOP},     {"TSTP", SIGTSTP},     {"URG", SIGURG},   {"XCPU", SIGXCPU},
                {"WINCH", SIGWINCH},   {"IO", SIGIO},         {"PWR", SIGPWR},   {"SYS", SIGSYS},
                {"STKFLT", SIGSTKFLT}, {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}};
  for (const auto& c : kCases) {
    EXPECT_EQ(SignalNumber(c.name), c.number) << c.name;
    EXPECT_EQ(SignalNumber(std::string("SIG") + c.name), c.number) << c.name;
    EXPECT_EQ(SignalName(c.number), std::string("SIG") + c.name);
  }
}

TEST(SignalNames, EveryNumberHasANameThatLeadsBack) {
  for (int n = 1; n <= kMaxSignal; ++n) {
    const std::string name = SignalName(n);
    EXPECT_FALSE(name.empty()) << n;
    if (n != 32 && n != 33) {
      EXPECT_EQ(SignalNumber(name), n) << name;
    }
  }
}

TEST(SignalNames, RealTimeSignals) {
  EXPECT_EQ(SignalNumber("RTMIN"), 34);
  EXPECT_EQ(SignalNumber("SIGRTMIN+1"), 35);
  EXPECT_EQ(SignalNumber("RTMAX"), 64);
  EXPECT_EQ(SignalNumber("RTMAX-2"), 62);
  EXPECT_EQ(SignalName(37), "SIGRTMIN+3");
}

TEST(SignalNames, WhatIsNoSignal) {
  for (const char* name :
       {"", "SIG", "term", "SIGterm", "SIGSIGTERM", "15", "RTMIN+31", "RTMIN-1", "RTMAX-31",
        "RTMIN+", "RTMIN+x", "RTMIN+99999999999", "TERM ", "SIGRT"}) {
    EXPECT_EQ(SignalNumber(name), std::nullopt) << name;
  }
  for (int n : {0, -1, 65, 1000}) EXPECT_EQ(SignalName(n), "");
}

TEST(SignalNames, OldNames) {
  EXPECT_EQ(SignalNumber("IOT"), SIGABRT);
  EXPECT_EQ(SignalNumber("CLD"), SIGCHLD);
  EXPECT_EQ(SignalNumber("POLL"), SIGIO);
}

}  // namespace
}  // namespace bridge
