// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/periodic_thread.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/time/clock.h"

namespace bridge {
namespace {

TEST(PeriodicThread, TakesTurnsUntilItIsGone) {
  std::atomic<int> turns = 0;
  {
    const PeriodicThread thread("turns", absl::Milliseconds(1), [&] {
      ++turns;
      turns.notify_all();
    });
    for (int seen = 0; seen < 3; seen = turns) turns.wait(seen);
  }
  EXPECT_GE(turns, 3);
}

TEST(PeriodicThread, IsNotWaitedForBetweenTurns) {
  const absl::Time begin = absl::Now();
  {
    const PeriodicThread thread("turns", absl::Hours(1), [] { ADD_FAILURE() << "too early"; });
  }
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
}

}  // namespace
}  // namespace bridge
