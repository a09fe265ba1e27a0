// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/run_task.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;

// A connected pair of non-blocking sockets.
class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds_), 0); }
  ~SocketPair() {
    Close(0);
    Close(1);
  }
  int operator[](int i) const { return fds_[i]; }
  void Close(int i) {
    if (fds_[i] >= 0) ::close(std::exchange(fds_[i], -1));
  }

 private:
  int fds_[2];
};

TEST(EventLoop, RunsPostedClosuresInOrderOnItsThread) {
  EventLoop loop;
  std::vector<int> order;
  bool on_loop = false;
  for (int i = 0; i < 100; ++i) loop.Post([&order, i] { order.push_back(i); });
  loop.RunAndWait([&] { on_loop = loop.OnLoop(); });
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_TRUE(on_loop);
  EXPECT_FALSE(loop.OnLoop());
}

TEST(EventLoop, KeepsTheOrderOfEachPostingThread) {
  EventLoop loop;
  std::vector<std::vector<int>> seen(4);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&loop, &seen, t] {
      for (int i = 0; i < 5000; ++i) loop.Post([&seen, t, i] { seen[t].push_back(i); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  loop.RunAndWait([] {});
  for (const auto& numbers : seen) {
    ASSERT_EQ(numbers.size(), 5000u);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(numbers[static_cast<size_t>(i)], i);
  }
}

TEST(EventLoop, PostFromTheLoopRunsInALaterTurn) {
  EventLoop loop;
  std::vector<std::string> order;
  Signal ended;
  loop.Post([&] {
    loop.Post([&] {
      order.emplace_back("inner");
      ended.Raise();
    });
    order.emplace_back("outer");
  });
  ended.Await();
  EXPECT_THAT(order, ElementsAre("outer", "inner"));
}

TEST(EventLoop, RunsWhatWasPostedBeforeItsEnd) {
  int ran = 0;
  {
    EventLoop loop;
    for (int i = 0; i < 10; ++i) loop.Post([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 10);
}

TEST(EventLoop, RunAndWaitOnTheLoopRunsAtOnce) {
  EventLoop loop;
  int value = 0;
  loop.RunAndWait([&] {
    loop.RunAndWait([&value] { value = 1; });
    value *= 10;
  });
  EXPECT_EQ(value, 10);
}

TEST(EventLoop, YieldLetsOthersRun) {
  EventLoop loop;
  std::vector<std::string> order;
  RunTask(loop, [&]() -> Task<void> {
    loop.Post([&order] { order.emplace_back("posted"); });
    co_await loop.Yield();
    order.emplace_back("resumed");
  });
  EXPECT_THAT(order, ElementsAre("posted", "resumed"));
}

TEST(EventLoop, SleepTakesRealTimeOnTheRealClock) {
  EventLoop loop;
  const absl::Duration before = loop.Now();
  const bool slept =
      RunTask(loop, [&]() -> Task<bool> { co_return co_await loop.Sleep(absl::Milliseconds(20)); });
  EXPECT_TRUE(slept);
  EXPECT_GE(loop.Now() - before, absl::Milliseconds(20));
}

TEST(EventLoop, SleepingZeroOrLessComesBackAtOnce) {
  FakeClock clock;
  EventLoop loop(clock);
  EXPECT_TRUE(
      RunTask(loop, [&]() -> Task<bool> { co_return co_await loop.Sleep(absl::ZeroDuration()); }));
  EXPECT_TRUE(
      RunTask(loop, [&]() -> Task<bool> { co_return co_await loop.Sleep(-absl::Seconds(5)); }));
}

TEST(EventLoop, TimersFollowAFakeClockAndNothingElse) {
  FakeClock clock;
  EventLoop loop(clock);
  std::vector<int> fired;
  Signal all;
  const auto sleeper = [&](int seconds) {
    loop.RunAndWait([&fired, &loop, &all, seconds] {
      Spawn(
          nullptr,
          [&fired, &loop, seconds]() -> Task<void> {
            const bool slept = co_await loop.Sleep(absl::Seconds(seconds));
            fired.push_back(slept ? seconds : -seconds);
          },
          [&fired, &all] {
            if (fired.size() == 3) all.Raise();
          });
    });
  };
  for (const int seconds : {30, 10, 20}) sleeper(seconds);
  loop.RunAndWait([&fired] { EXPECT_TRUE(fired.empty()); });
  clock.Advance(absl::Seconds(9));
  loop.RunAndWait([&fired] { EXPECT_TRUE(fired.empty()); });
  clock.Advance(absl::Hours(1));
  all.Await();
  EXPECT_THAT(fired, ElementsAre(10, 20, 30));
}

TEST(EventLoop, CancelEndsASleepAndItsTimer) {
  FakeClock clock;
  EventLoop loop(clock);
  CancelSource cancel;
  std::optional<bool> slept;
  Signal started;
  Signal ended;
  loop.Post([&] {
    Spawn(
        &cancel, [&]() -> Task<void> { slept = co_await loop.Sleep(absl::InfiniteDuration()); },
        [&] { ended.Raise(); });
    started.Raise();
  });
  started.Await();
  loop.Post([&cancel] { cancel.Cancel(); });
  ended.Await();
  EXPECT_EQ(slept, false);
  clock.Advance(absl::Hours(24));
  loop.RunAndWait([] {});
}

// A clock that outlives its loop still rings the bell of the loop that is gone.
TEST(EventLoop, TheClockMayAdvanceAfterTheLoopsEnd) {
  FakeClock clock;
  {
    EventLoop loop(clock);
  }
  clock.Advance(absl::Seconds(1));
}

TEST(Timer, SetAgainReplacesAndClearDisarms) {
  FakeClock clock;
  EventLoop loop(clock);
  int fired = 0;
  std::optional<Timer> timer;
  loop.RunAndWait([&] {
    timer.emplace(loop, [](void* count) { ++*static_cast<int*>(count); }, &fired);
    timer->SetAt(loop.Now() + absl::Seconds(1));
    timer->SetAt(loop.Now() + absl::Seconds(5));
  });
  clock.Advance(absl::Seconds(2));
  loop.RunAndWait([] {});
  EXPECT_EQ(fired, 0);
  clock.Advance(absl::Seconds(4));
  RunTask(loop, [&]() -> Task<void> { co_await loop.Yield(); });
  EXPECT_EQ(fired, 1);
  loop.RunAndWait([&] {
    EXPECT_FALSE(timer->armed());
    timer->SetAt(loop.Now() + absl::Seconds(1));
    timer->Clear();
    timer->SetAt(absl::InfiniteDuration());
    EXPECT_FALSE(timer->armed());
  });
  clock.Advance(absl::Hours(1));
  RunTask(loop, [&]() -> Task<void> { co_await loop.Yield(); });
  EXPECT_EQ(fired, 1);
  loop.RunAndWait([&] { timer.reset(); });
}

struct Handler final : FdHandler {
  void OnFd(int, uint32_t events) override { seen |= events; }
  uint32_t seen = 0;
};

// Read on the loop, which goes on noting events.
uint32_t EventsAfterATurn(EventLoop& loop, Handler& handler) {
  return RunTask(loop, [&]() -> Task<uint32_t> {
    handler.seen = 0;
    for (int i = 0; i < 3; ++i) co_await loop.Yield();
    co_return handler.seen;
  });
}

// What libcurl does behind our back: a socket is closed without a word, and the next one gets its
// number. First half: the loop believes that it watches the number, the kernel does not.
TEST(EventLoop, WatchesANumberThatWasClosedAndUsedAgain) {
  EventLoop loop;
  Handler handler;
  SocketPair old_pair;
  const int number = old_pair[0];
  loop.RunAndWait([&] { loop.Watch(number, EPOLLIN, &handler); });
  old_pair.Close(0);
  SocketPair pair;
  ASSERT_EQ(pair[0], number);
  loop.RunAndWait([&] { loop.Watch(number, EPOLLIN, &handler); });
  ASSERT_EQ(::write(pair[1], "x", 1), 1);
  EXPECT_EQ(EventsAfterATurn(loop, handler), uint32_t{EPOLLIN});
  loop.RunAndWait([&] { loop.Unwatch(number, &handler); });
}

// Second half: the kernel watches a descriptor of which the table knows nothing any more.
TEST(EventLoop, WatchesANumberThatTheKernelStillKnows) {
  EventLoop loop;
  Handler first;
  Handler second;
  SocketPair pair;
  const int number = pair[0];
  const int copy = ::dup(number);  // keeps the kernel's registration when `number` is closed
  loop.RunAndWait([&] { loop.Watch(number, EPOLLIN, &first); });
  pair.Close(0);
  loop.RunAndWait([&] { loop.Unwatch(number, &first); });  // the kernel says EBADF: it stays
  ASSERT_EQ(::dup2(copy, number), number);                 // the same file under the same number
  loop.RunAndWait([&] { loop.Watch(number, EPOLLIN, &second); });
  ASSERT_EQ(::write(pair[1], "x", 1), 1);
  EXPECT_EQ(EventsAfterATurn(loop, second), uint32_t{EPOLLIN});
  EXPECT_EQ(first.seen, 0u);
  loop.RunAndWait([&] { loop.Unwatch(number, &second); });
  ::close(number);
  ::close(copy);
}

TEST(EventLoop, AnotherHandlersUnwatchDoesNothing) {
  EventLoop loop;
  Handler mine;
  Handler other;
  SocketPair pair;
  loop.RunAndWait([&] {
    loop.Watch(pair[0], EPOLLIN, &mine);
    loop.Unwatch(pair[0], &other);
    loop.Unwatch(123456, &other);
  });
  ASSERT_EQ(::write(pair[1], "x", 1), 1);
  EXPECT_EQ(EventsAfterATurn(loop, mine), uint32_t{EPOLLIN});
  loop.RunAndWait([&] { loop.Unwatch(pair[0], &mine); });
}

TEST(FdWatch, WaitsForBytesAndForRoom) {
  EventLoop loop;
  SocketPair pair;
  std::string got;
  RunTask(loop, [&]() -> Task<void> {
    FdWatch watch(loop, pair[0]);
    const bool writable = co_await watch.Writable();
    EXPECT_TRUE(writable);
    char buffer[8];
    EXPECT_EQ(::read(pair[0], buffer, sizeof(buffer)), -1);
    loop.Post([&pair] { (void)!::write(pair[1], "hello", 5); });
    const bool readable = co_await watch.Readable();
    EXPECT_TRUE(readable);
    got.assign(buffer, static_cast<size_t>(::read(pair[0], buffer, sizeof(buffer))));
  });
  EXPECT_EQ(got, "hello");
}

TEST(FdWatch, HangUpWakesTheReader) {
  EventLoop loop;
  SocketPair pair;
  RunTask(loop, [&]() -> Task<void> {
    FdWatch watch(loop, pair[0]);
    loop.Post([&pair] { pair.Close(1); });
    const bool readable = co_await watch.Readable();
    EXPECT_TRUE(readable);
  });
}

// Both tasks wait; the reader, resumed first, ends both and the watch with them.
TEST(FdWatch, TheReaderMayDestroyItWhileTheWriterWaits) {
  EventLoop loop;
  SocketPair pair;
  std::string filler(1 << 20, 'x');
  RunTask(loop, [&]() -> Task<void> {
    std::optional<FdWatch> watch;
    watch.emplace(loop, pair[0]);
    const bool first = co_await watch->Writable();
    EXPECT_TRUE(first);
    while (::write(pair[0], filler.data(), filler.size()) > 0) continue;
    auto reader = [&]() -> Task<void> { (void)co_await watch->Readable(); };
    auto writer = [&]() -> Task<void> { (void)co_await watch->Writable(); };
    loop.Post([&pair] { pair.Close(1); });  // readable and writable at the same moment
    co_await RunBoth(reader, writer);
    watch.reset();
  });
}

TEST(FdWatch, CancelEndsAWait) {
  EventLoop loop;
  SocketPair pair;
  CancelSource cancel;
  std::optional<bool> readable;
  RunTask(
      loop,
      [&]() -> Task<void> {
        FdWatch watch(loop, pair[0]);
        loop.Post([&cancel] { cancel.Cancel(); });
        readable = co_await watch.Readable();
      },
      &cancel);
  EXPECT_EQ(readable, false);
}

TEST(RunWithin, TellsWhetherTheBodyEndedByItself) {
  FakeClock clock;
  EventLoop loop(clock);
  auto quick = []() -> Task<void> { co_return; };
  auto endless = [&loop]() -> Task<void> { (void)co_await loop.Sleep(absl::InfiniteDuration()); };
  EXPECT_TRUE(RunTask(loop, [&] { return RunWithin(loop, absl::Seconds(1), quick); }));
  Signal started;
  std::optional<bool> ended;
  Signal done;
  loop.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> { ended = co_await RunWithin(loop, absl::Seconds(1), endless); },
        [&] { done.Raise(); });
    started.Raise();
  });
  started.Await();
  clock.Advance(absl::Seconds(2));
  done.Await();
  EXPECT_EQ(ended, false);
}

TEST(RunWithin, ACancelledCallerCancelsTheBody) {
  FakeClock clock;
  EventLoop loop(clock);
  CancelSource cancel;
  auto endless = [&loop]() -> Task<void> { (void)co_await loop.Sleep(absl::InfiniteDuration()); };
  loop.Post([&] { loop.Post([&cancel] { cancel.Cancel(); }); });
  EXPECT_FALSE(
      RunTask(loop, [&] { return RunWithin(loop, absl::InfiniteDuration(), endless); }, &cancel));
}

}  // namespace
}  // namespace bridge
