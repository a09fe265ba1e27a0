// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/closure.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace bridge {
namespace {

TEST(Closure, RunsATrivialLambda) {
  int value = 0;
  Closure closure([&value] { value = 7; });
  closure.Run();
  EXPECT_EQ(value, 7);
}

TEST(Closure, MovesWhatCannotBeCopied) {
  int value = 0;
  Closure first([&value, five = std::make_unique<int>(5)] { value = *five; });
  Closure second(std::move(first));
  second.Run();
  EXPECT_EQ(value, 5);
}

TEST(Closure, DestroysItsCapturesOnceRunOrNot) {
  auto counted = std::make_shared<int>(0);
  {
    Closure run([counted] {});
    Closure dropped([counted] {});
    EXPECT_EQ(counted.use_count(), 3);
    run.Run();
    EXPECT_EQ(counted.use_count(), 2);
    run = std::move(dropped);
    EXPECT_EQ(counted.use_count(), 2);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(Closure, KeepsLargeCapturesOnTheHeap) {
  std::array<int, 100> large{};
  large[99] = 9;
  int value = 0;
  std::vector<Closure> queue;
  queue.emplace_back([large, &value] { value = large[99]; });
  for (int i = 0; i < 100; ++i) queue.emplace_back([] {});  // moves the first one several times
  queue.front().Run();
  EXPECT_EQ(value, 9);
}

TEST(Closure, StringsSurviveTheGrowthOfAQueue) {
  std::vector<std::string> got;
  std::vector<Closure> queue;
  queue.reserve(2);  // so that it grows, and moves what it holds
  for (int i = 0; i < 50; ++i) {
    queue.emplace_back([&got, text = std::to_string(i)] { got.push_back(text); });
  }
  for (Closure& closure : queue) closure.Run();
  ASSERT_EQ(got.size(), 50u);
  EXPECT_EQ(got[49], "49");
}

}  // namespace
}  // namespace bridge
