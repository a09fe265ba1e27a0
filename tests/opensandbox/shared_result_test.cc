// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/shared_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace bridge {
namespace {

using ::testing::ElementsAre;
using Shared = SharedResult<int>;

// A task of one thread needs no loop.
struct Waiting {
  CancelSource cancel;
  std::optional<int> got;
  bool ended = false;
  void Start(std::shared_ptr<Shared> shared, std::vector<std::string>* log = nullptr,
             std::string name = "") {
    Spawn(
        &cancel,
        [this, shared, log, name]() -> Task<void> {
          got = co_await Shared::Wait(shared);
          if (log != nullptr) log->push_back(name);
        },
        [this] { ended = true; });
  }
};

TEST(SharedResult, WakesEveryoneInOrder) {
  auto shared = std::make_shared<Shared>();
  std::vector<std::string> log;
  Waiting a;
  Waiting b;
  a.Start(shared, &log, "a");
  b.Start(shared, &log, "b");
  EXPECT_FALSE(a.ended);
  shared->Set(7);
  EXPECT_EQ(a.got, 7);
  EXPECT_EQ(b.got, 7);
  EXPECT_THAT(log, ElementsAre("a", "b"));
}

TEST(SharedResult, LateComersGetItAtOnce) {
  auto shared = std::make_shared<Shared>();
  shared->Set(7);
  Waiting a;
  a.Start(shared);
  EXPECT_TRUE(a.ended);
  EXPECT_EQ(a.got, 7);
}

TEST(SharedResult, ACancelledTaskLeavesTheOthersAlone) {
  auto shared = std::make_shared<Shared>();
  Waiting a;
  Waiting b;
  a.Start(shared);
  b.Start(shared);
  a.cancel.Cancel();
  EXPECT_TRUE(a.ended);
  EXPECT_EQ(a.got, std::nullopt);
  shared->Set(7);
  EXPECT_EQ(b.got, 7);
}

TEST(SharedResult, AResumedTaskMayCancelAnother) {
  auto shared = std::make_shared<Shared>();
  Waiting first;
  Waiting second;
  Spawn(
      &first.cancel,
      [&]() -> Task<void> {
        first.got = co_await Shared::Wait(shared);
        second.cancel.Cancel();
      },
      [&] { first.ended = true; });
  second.Start(shared);
  shared->Set(7);
  EXPECT_TRUE(second.ended);
  EXPECT_EQ(second.got, 7);  // the value was there
}

TEST(SharedResult, NobodyNeedsToWait) {
  auto shared = std::make_shared<Shared>();
  shared->Set(1);
  EXPECT_TRUE(shared->ready());
  EXPECT_EQ(shared->value(), 1);
}

}  // namespace
}  // namespace bridge
