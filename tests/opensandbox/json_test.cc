// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/json.h"

#include <gtest/gtest.h>

#include <string>

#include "bridge/opensandbox/exec_frames.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/file_watcher.h"
#include "bridge/opensandbox/lifecycle_codec.h"

namespace bridge {
namespace {

std::string Nested(int levels) {
  return std::string(static_cast<size_t>(levels), '[') +
         std::string(static_cast<size_t>(levels), ']');
}

TEST(Json, NestsAsDeepAsItIsAllowedTo) {
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth)).is_array());
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth + 1)).is_discarded());
  // Levels that are over do not count, nor does what is in a string.
  std::string wide = "[";
  for (int i = 0; i < 200; ++i) wide += "[],{},";
  EXPECT_EQ(ParseJson(wide + "0]").size(), 401u);
  EXPECT_EQ(ParseJson("\"\\\"" + std::string(200, '[') + "\\\\\"").get<std::string>(),
            "\"" + std::string(200, '[') + "\\");
  EXPECT_TRUE(ParseJson("").is_discarded());
  EXPECT_TRUE(ParseJson("{").is_discarded());
}

// A program that answers in a daemon's place could end the bridge by it, for everybody.
TEST(Json, NoAnswersDepthTakesTheBridgesStack) {
  const std::string nested = Nested(1'000'000);
  EXPECT_FALSE(ParseFileChange("{\"event\":\"error\",\"error\":" + nested + "}").ok());
  EXPECT_FALSE(OwnListError("{\"error\":" + nested + "}").ok());
  EXPECT_FALSE(ParseExecStarted("{\"id\":\"a\",\"x\":" + nested + "}").ok());
  EXPECT_FALSE(ParseSandbox("{\"metadata\":{\"label\":" + nested + "}}").ok());
}

}  // namespace
}  // namespace bridge
