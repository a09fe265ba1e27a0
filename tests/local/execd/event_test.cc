// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/event.h"

#include <gtest/gtest.h>

namespace bridge::local::execd {
namespace {

// Bytes of the recordings echo-hi, exit-3, background-start, background-start-failure, empty-lines.
TEST(Event, BytesAsRecorded) {
  EXPECT_EQ(TextEvent("init", "7283c039812148acbb8f38a01f2e9f1e", 1795970443278),
            "{\"type\":\"init\",\"text\":\"7283c039812148acbb8f38a01f2e9f1e\","
            "\"timestamp\":1795970443278}\n\n");
  EXPECT_EQ(PingEvent(1795970443279),
            "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":1795970443279}\n\n");
  EXPECT_EQ(CompleteEvent(5, 1795970443283),
            "{\"type\":\"execution_complete\",\"execution_time\":5,"
            "\"timestamp\":1795970443283}\n\n");
  EXPECT_EQ(CompleteEvent(0, 1795970513980),
            "{\"type\":\"execution_complete\",\"timestamp\":1795970513980}\n\n");
  EXPECT_EQ(ErrorEvent("3", "exit status 3", 1795970447312),
            "{\"type\":\"error\",\"timestamp\":1795970447312,\"error\":{\"ename\":"
            "\"CommandExecError\",\"evalue\":\"3\",\"traceback\":[\"exit status 3\"]}}\n\n");
  EXPECT_EQ(TextEvent("stdout", "\n", 1795970459416),
            "{\"type\":\"stdout\",\"text\":\"\\n\",\"timestamp\":1795970459416}\n\n");
}

TEST(Event, ErrorBodies) {
  EXPECT_EQ(ErrorBody("INVALID_REQUEST_BODY", "command not found: nope"),
            "{\"code\":\"INVALID_REQUEST_BODY\",\"message\":\"command not found: nope\"}");
  EXPECT_EQ(ErrorBody("UNKNOWN", ""), "{\"code\":\"UNKNOWN\"}");
}

TEST(Event, EmptyTextIsLeftOut) {
  EXPECT_EQ(TextEvent("stdout", "", 7), "{\"type\":\"stdout\",\"timestamp\":7}\n\n");
}

}  // namespace
}  // namespace bridge::local::execd
