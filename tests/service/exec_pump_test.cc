// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/exec_pump.h"

#include <gtest/gtest.h>

namespace bridge {
namespace {

constexpr StreamId kOut = StreamId::kStdout;
constexpr StreamId kErr = StreamId::kStderr;

TEST(OutputLimit, CutsEachStreamAtTheLimitAndSaysSo) {
  OutputLimit limit(5);
  EXPECT_EQ(limit.Take(kOut, 3), 3);
  EXPECT_FALSE(limit.full(kOut));
  EXPECT_EQ(limit.Take(kOut, 3), 2);
  EXPECT_TRUE(limit.full(kOut));
  EXPECT_TRUE(limit.truncated(kOut));
  EXPECT_EQ(limit.Take(kOut, 3), 0);
  EXPECT_EQ(limit.Take(kErr, 5), 5);
  EXPECT_TRUE(limit.full(kErr));
  EXPECT_FALSE(limit.truncated(kErr)) << "exactly the limit is not too much";
}

TEST(OutputLimit, ZeroTakesNothing) {
  OutputLimit limit(0);
  EXPECT_TRUE(limit.full(kOut));
  EXPECT_FALSE(limit.truncated(kOut));
  EXPECT_EQ(limit.Take(kOut, 1), 0);
  EXPECT_TRUE(limit.truncated(kOut));
}

TEST(OutputLimit, NoneNeverCuts) {
  OutputLimit limit(OutputLimit::kNone);
  EXPECT_EQ(limit.Take(kOut, int64_t{1} << 62), int64_t{1} << 62);
  EXPECT_FALSE(limit.truncated(kOut));
}

}  // namespace
}  // namespace bridge
