// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/clock.h"

#include <gtest/gtest.h>

namespace bridge {
namespace {

TEST(FakeClock, StandsStillUntilAdvanced) {
  FakeClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(5));
}

TEST(FakeClock, WakesItsListeners) {
  FakeClock clock;
  int woken = 0;
  clock.OnAdvance([&] { ++woken; });
  clock.Advance(absl::Milliseconds(1));
  clock.Advance(absl::Milliseconds(1));
  EXPECT_EQ(woken, 2);
}

TEST(RealClock, MonotonicNeverGoesBack) {
  const absl::Duration a = Clock::Real().Monotonic();
  EXPECT_LE(a, Clock::Real().Monotonic());
}

}  // namespace
}  // namespace bridge
