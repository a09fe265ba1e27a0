// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/task_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fakes/run_task.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;

class TaskScopeTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  EventLoop loop_{clock_};
  TaskScope scope_;
  std::vector<std::string> log_;

  // A background task that sleeps and then says how it went.
  void StartSleeper(const std::string& name, absl::Duration duration) {
    scope_.Start(name, [this, name, duration]() -> Task<void> {
      const bool slept = co_await loop_.Sleep(duration);
      log_.push_back(name + (slept ? " slept" : " cancelled"));
    });
  }
};

TEST_F(TaskScopeTest, StartsAtOnceAndCounts) {
  loop_.RunAndWait([this] {
    scope_.Start("instant", []() -> Task<void> { co_return; });
    EXPECT_EQ(scope_.running(), 0);
    StartSleeper("a", absl::Seconds(1));
    StartSleeper("b", absl::Seconds(2));
    EXPECT_EQ(scope_.running(), 2);
    EXPECT_THAT(scope_.Names(), ElementsAre("a", "b"));
  });
  RunTask(loop_, [this] { return scope_.Drain(loop_, absl::ZeroDuration()); });
  EXPECT_THAT(log_, ElementsAre("a cancelled", "b cancelled"));
}

TEST_F(TaskScopeTest, DrainOfNothingReturnsAtOnce) {
  RunTask(loop_, [this] { return scope_.Drain(loop_, absl::InfiniteDuration()); });
  EXPECT_EQ(scope_.running(), 0);
}

TEST_F(TaskScopeTest, DrainWaitsForTasksThatEndInTime) {
  Signal draining;
  Signal drained;
  loop_.Post([&] {
    StartSleeper("kill", absl::Seconds(3));
    Spawn(
        nullptr, [this] { return scope_.Drain(loop_, absl::Seconds(5)); },
        [&drained] { drained.Raise(); });
    draining.Raise();
  });
  draining.Await();
  clock_.Advance(absl::Seconds(3));
  drained.Await();
  EXPECT_THAT(log_, ElementsAre("kill slept"));
}

TEST_F(TaskScopeTest, DrainCancelsWhatIsLeftAfterTheBound) {
  Signal draining;
  Signal drained;
  loop_.Post([&] {
    StartSleeper("quick", absl::Seconds(3));
    StartSleeper("slow", absl::Seconds(60));
    Spawn(
        nullptr, [this] { return scope_.Drain(loop_, absl::Seconds(5)); },
        [&drained] { drained.Raise(); });
    draining.Raise();
  });
  draining.Await();
  clock_.Advance(absl::Seconds(5));
  drained.Await();
  EXPECT_THAT(log_, ElementsAre("quick slept", "slow cancelled"));
}

TEST_F(TaskScopeTest, ACancelledDrainWaitsForNothingButTheCancelledTasks) {
  CancelSource cancel;
  loop_.Post([&] {
    StartSleeper("a", absl::Seconds(60));
    loop_.Post([&cancel] { cancel.Cancel(); });
  });
  RunTask(loop_, [this] { return scope_.Drain(loop_, absl::InfiniteDuration()); }, &cancel);
  EXPECT_THAT(log_, ElementsAre("a cancelled"));
}

TEST_F(TaskScopeTest, ATaskStartedAfterCancelAllIsCancelledFromTheStart) {
  loop_.RunAndWait([this] {
    scope_.CancelAll();
    StartSleeper("late", absl::Seconds(1));
    EXPECT_EQ(scope_.running(), 0);
  });
  EXPECT_THAT(log_, ElementsAre("late cancelled"));
}

// A task that is cancelled may start another one, as long as that ends too.
TEST_F(TaskScopeTest, TasksMayStartTasksWhileAllAreCancelled) {
  loop_.RunAndWait([this] {
    scope_.Start("parent", [this]() -> Task<void> {
      (void)co_await loop_.Sleep(absl::InfiniteDuration());
      StartSleeper("child", absl::Seconds(1));
      log_.emplace_back("parent ended");
    });
    StartSleeper("sibling", absl::Seconds(1));
    scope_.CancelAll();
    EXPECT_EQ(scope_.running(), 0);
  });
  EXPECT_THAT(log_, ElementsAre("child cancelled", "parent ended", "sibling cancelled"));
}

// The captures of the body live as long as the task.
TEST_F(TaskScopeTest, KeepsTheBodyAlive) {
  auto counted = std::make_shared<int>(1);
  loop_.RunAndWait([&] {
    scope_.Start("holder", [this, counted]() -> Task<void> {
      (void)co_await loop_.Sleep(absl::Seconds(1));
      log_.push_back(std::to_string(*counted));
    });
    EXPECT_EQ(counted.use_count(), 2);
  });
  RunTask(loop_, [this] { return scope_.Drain(loop_, absl::ZeroDuration()); });
  EXPECT_THAT(log_, ElementsAre("1"));
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(TaskScopeDeathTest, DyingWithARunningTaskEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Waiter never;
        auto scope = std::make_unique<TaskScope>();
        scope->Start("kill command", [&never]() -> Task<void> { (void)co_await never.Wait(); });
        scope.reset();
      },
      "kill command");
}

}  // namespace
}  // namespace bridge
