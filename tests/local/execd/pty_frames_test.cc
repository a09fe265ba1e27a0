// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/pty_frames.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>

namespace bridge::local::execd {
namespace {

// Bytes of the recordings pty-replay-tail and pty-bad-frames.
TEST(PtyFrames, AsRecorded) {
  EXPECT_EQ(PtyReplayFrame(2999990, "xxxxxxxxxxDONE\n"),
            std::string("\3\0\0\0\0\0\x2d\xc6\xb6xxxxxxxxxxDONE\n", 24));
  EXPECT_EQ(PtyErrorFrame("unknown frame type \"bogus\"", "INVALID_FRAME"),
            "{\"type\":\"error\",\"error\":\"unknown frame type "
            "\\\"bogus\\\"\",\"code\":\"INVALID_FRAME\"}\n");
}

TEST(PtyFrames, Signals) {
  EXPECT_EQ(PtySignalNumber("SIGINT"), SIGINT);
  EXPECT_EQ(PtySignalNumber("SIGTERM"), SIGTERM);
  EXPECT_EQ(PtySignalNumber("SIGKILL"), SIGKILL);
  EXPECT_EQ(PtySignalNumber("SIGQUIT"), SIGQUIT);
  EXPECT_EQ(PtySignalNumber("SIGHUP"), SIGHUP);
  EXPECT_EQ(PtySignalNumber("SIGUSR1"), 0);
  EXPECT_EQ(PtySignalNumber("INT"), 0);
}

}  // namespace
}  // namespace bridge::local::execd
