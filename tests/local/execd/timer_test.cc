// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace bridge::local::execd {
namespace {

TEST(Timer, RunsInOrderOfTime) {
  std::vector<int> order;
  std::promise<void> done;
  Timer timer;
  timer.After(absl::Milliseconds(30), [&] {
    order.push_back(3);
    done.set_value();
  });
  timer.After(absl::Milliseconds(10), [&] { order.push_back(2); });
  timer.After(absl::ZeroDuration(), [&] { order.push_back(1); });
  ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Timer, ACallMaySchedule) {
  std::promise<void> done;
  Timer timer;
  timer.After(absl::ZeroDuration(),
              [&] { timer.After(absl::Milliseconds(1), [&] { done.set_value(); }); });
  ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(Timer, DestructionDropsTheRest) {
  std::atomic<bool> ran{false};
  {
    Timer timer;
    timer.After(absl::Hours(1), [&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace bridge::local::execd
