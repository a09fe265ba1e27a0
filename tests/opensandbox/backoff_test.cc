// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/backoff.h"

#include <gtest/gtest.h>

namespace bridge {
namespace {

TEST(Backoff, SteadyDoublesUpToItsMost) {
  Backoff backoff = Backoff::Steady(absl::Milliseconds(300), absl::Seconds(1));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(300));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(600));
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
}

TEST(Backoff, JitterIsAFractionOfTheBound) {
  double next = 0.0;
  Backoff backoff =
      Backoff::Jittered(absl::Milliseconds(100), absl::Milliseconds(200), [&next] { return next; });
  EXPECT_EQ(backoff.Next(), absl::ZeroDuration());
  next = 0.25;
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(50));
  next = 0.5;
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(100));
}

TEST(Backoff, SystemRandomIsAFraction) {
  const RandomFraction random = SystemRandom();
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = random();
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    sum += x;
  }
  EXPECT_GT(sum, 300);  // the mean of 1000 draws is 0.5 ± 0.01
  EXPECT_LT(sum, 700);
}

}  // namespace
}  // namespace bridge
