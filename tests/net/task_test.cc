// SPDX-License-Identifier: Apache-2.0
//
// Tasks need no loop: here callbacks are played by the test.
#include "bridge/net/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace bridge {
namespace {

Task<int> Ready(int value) { co_return value; }

// Raises a flag when it is destroyed.
class Guard {
 public:
  explicit Guard(bool* gone) : gone_(gone) {}
  ~Guard() { *gone_ = true; }

 private:
  bool* gone_;
};

TEST(Task, IsLazy) {
  bool ran = false;
  auto body = [&ran]() -> Task<void> {
    ran = true;
    co_return;
  };
  {
    auto task = body();
    EXPECT_FALSE(ran);
  }
  EXPECT_FALSE(ran);
}

TEST(Task, YieldsItsValueToTheAwaiter) {
  int got = 0;
  bool done = false;
  Spawn(
      nullptr, [&got]() -> Task<void> { got = co_await Ready(3) + co_await Ready(4); },
      [&done] { done = true; });
  EXPECT_EQ(got, 7);
  EXPECT_TRUE(done);
}

TEST(Task, CarriesMoveOnlyAndBraceInitialisedValues) {
  auto make = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  auto empty = []() -> Task<std::string> { co_return {}; };
  auto failed = []() -> Task<absl::StatusOr<std::unique_ptr<int>>> {
    co_return absl::NotFoundError("x");
  };
  Spawn(
      nullptr,
      [&]() -> Task<void> {
        const auto five = co_await make();
        EXPECT_EQ(*five, 5);
        EXPECT_EQ(co_await empty(), "");
        const auto status = co_await failed();
        EXPECT_EQ(status.status(), absl::NotFoundError("x"));
      },
      [] {});
}

TEST(Task, SuspendedChildResumesItsAwaiter) {
  Waiter callback;
  std::vector<std::string> log;
  auto inner = [&]() -> Task<int> {
    const bool ok = co_await callback.Wait();
    log.push_back(ok ? "notified" : "not");
    co_return 1;
  };
  auto middle = [&]() -> Task<int> { co_return co_await inner() + 1; };
  Spawn(
      nullptr,
      [&]() -> Task<void> {
        const int value = co_await middle();
        log.push_back(std::to_string(value));
      },
      [&] { log.emplace_back("done"); });
  EXPECT_TRUE(log.empty());
  callback.Notify(true);
  EXPECT_EQ(log, (std::vector<std::string>{"notified", "2", "done"}));
}

TEST(Task, LocalsAreGoneBeforeDone) {
  bool gone = false;
  bool gone_at_done = false;
  Spawn(
      nullptr,
      [&]() -> Task<void> {
        Guard guard(&gone);
        co_return;
      },
      [&] { gone_at_done = gone; });
  EXPECT_TRUE(gone_at_done);
}

// One await that does not suspend must need no stack, whatever the compiler makes of it.
TEST(Task, ThreeMillionReadyAwaitsNeedNoStack) {
  int64_t sum = 0;
  auto body = [&sum]() -> Task<void> {
    for (int i = 0; i < 3'000'000; ++i) sum += co_await Ready(i & 1);
  };
  Spawn(nullptr, body, [] {});
  EXPECT_EQ(sum, 1'500'000);
}

// Nor one that does, as long as it is resumed from outside.
TEST(Task, AMillionSuspendedAwaitsNeedNoStack) {
  Waiter callback;
  int64_t sum = 0;
  auto child = [&callback]() -> Task<int> {
    const bool ok = co_await callback.Wait();
    co_return ok ? 1 : 0;
  };
  auto body = [&]() -> Task<void> {
    for (int i = 0; i < 1'000'000; ++i) sum += co_await child();
  };
  Spawn(nullptr, body, [] {});
  while (callback.waiting()) callback.Notify(true);
  EXPECT_EQ(sum, 1'000'000);
}

TEST(Waiter, NotifyWithoutAWaitIsForgotten) {
  Waiter callback;
  callback.Notify(true);
  std::optional<bool> got;
  Spawn(nullptr, [&]() -> Task<void> { got = co_await callback.Wait(); }, [] {});
  EXPECT_FALSE(got.has_value());
  callback.Notify(false);
  EXPECT_EQ(got, false);
}

// The resumed task may end and take the Waiter with it.
TEST(Waiter, TheTaskMayDestroyItWhileItNotifies) {
  auto callback = std::make_unique<Waiter>();
  Waiter* raw = callback.get();
  Spawn(
      nullptr,
      [&callback]() -> Task<void> {
        (void)co_await callback->Wait();
        callback.reset();
      },
      [] {});
  raw->Notify(true);
  EXPECT_EQ(callback, nullptr);
}

TEST(CancelSource, EndsTheWaitInFlightAndAllLaterOnes) {
  CancelSource cancel;
  Waiter callback;
  std::vector<bool> got;
  Spawn(
      &cancel,
      [&]() -> Task<void> {
        got.push_back(co_await callback.Wait());
        got.push_back(co_await callback.Wait());
        got.push_back(co_await Cancelled());
      },
      [] {});
  EXPECT_TRUE(got.empty());
  cancel.Cancel();
  EXPECT_EQ(got, (std::vector<bool>{false, false, true}));
}

// A signal that comes between two waits, while the task runs, is not lost.
TEST(CancelSource, IsStickyWhenNobodyWaits) {
  CancelSource cancel;
  Waiter callback;
  std::optional<bool> got;
  Spawn(
      &cancel,
      [&]() -> Task<void> {
        cancel.Cancel();
        got = co_await callback.Wait();
      },
      [] {});
  EXPECT_EQ(got, false);
  EXPECT_FALSE(callback.waiting());
}

TEST(CancelSource, ReachesTheTasksThatTheTaskAwaits) {
  CancelSource cancel;
  Waiter callback;
  std::optional<bool> got;
  auto inner = [&]() -> Task<bool> { co_return co_await callback.Wait(); };
  auto middle = [&]() -> Task<bool> { co_return co_await inner(); };
  Spawn(&cancel, [&]() -> Task<void> { got = co_await middle(); }, [] {});
  cancel.Cancel();
  EXPECT_EQ(got, false);
}

TEST(CancelSource, LeavesUncancellableWaitsAlone) {
  CancelSource cancel;
  Waiter callback;
  std::optional<bool> got;
  Spawn(&cancel, [&]() -> Task<void> { got = co_await callback.WaitUncancellable(); }, [] {});
  cancel.Cancel();
  EXPECT_FALSE(got.has_value());
  callback.Notify(true);
  EXPECT_EQ(got, true);
}

TEST(CancelSource, CancelledBeforeTheTaskStarts) {
  CancelSource cancel;
  cancel.Cancel();
  cancel.Cancel();
  Waiter callback;
  std::optional<bool> got;
  Spawn(&cancel, [&]() -> Task<void> { got = co_await callback.Wait(); }, [] {});
  EXPECT_EQ(got, false);
}

TEST(RunBoth, ReturnsWhenBothEndedByThemselves) {
  bool done = false;
  auto nothing = []() -> Task<void> { co_return; };
  Spawn(nullptr, [&]() -> Task<void> { co_await RunBoth(nothing, nothing); }, [&] { done = true; });
  EXPECT_TRUE(done);
}

TEST(RunBoth, TheFirstToEndCancelsTheOther) {
  Waiter left;
  Waiter right;
  std::optional<bool> right_got;
  bool done = false;
  auto a = [&]() -> Task<void> { (void)co_await left.Wait(); };
  auto b = [&]() -> Task<void> { right_got = co_await right.Wait(); };
  Spawn(nullptr, [&]() -> Task<void> { co_await RunBoth(a, b); }, [&] { done = true; });
  left.Notify(true);
  EXPECT_EQ(right_got, false);
  EXPECT_TRUE(done);
}

TEST(RunBoth, EndsAtOnceWhenTheFirstBodyNeverSuspends) {
  Waiter right;
  std::optional<bool> right_got;
  auto a = []() -> Task<void> { co_return; };
  auto b = [&]() -> Task<void> { right_got = co_await right.Wait(); };
  bool done = false;
  Spawn(nullptr, [&]() -> Task<void> { co_await RunBoth(a, b); }, [&] { done = true; });
  EXPECT_EQ(right_got, false);
  EXPECT_TRUE(done);
}

TEST(RunBoth, CancellingTheCallerCancelsBoth) {
  CancelSource cancel;
  Waiter left;
  Waiter right;
  int cancelled = 0;
  auto a = [&]() -> Task<void> { cancelled += (co_await left.Wait()) ? 0 : 1; };
  auto b = [&]() -> Task<void> { cancelled += (co_await right.Wait()) ? 0 : 1; };
  bool done = false;
  Spawn(&cancel, [&]() -> Task<void> { co_await RunBoth(a, b); }, [&] { done = true; });
  cancel.Cancel();
  EXPECT_EQ(cancelled, 2);
  EXPECT_TRUE(done);
}

// A body that has to finish something first delays the end, also for a cancelled caller.
TEST(RunBoth, WaitsForABodyThatCannotBeAbandoned) {
  CancelSource cancel;
  Waiter left;
  Waiter write;
  bool done = false;
  auto a = [&]() -> Task<void> { (void)co_await left.Wait(); };
  auto b = [&]() -> Task<void> { (void)co_await write.WaitUncancellable(); };
  Spawn(&cancel, [&]() -> Task<void> { co_await RunBoth(a, b); }, [&] { done = true; });
  cancel.Cancel();
  EXPECT_FALSE(done);
  write.Notify(true);
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace bridge
