// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/fake_time.h — runs a task to its end on a clock that the test moves: hours pass in
// milliseconds, in the same order every time. For tasks that talk to fakes on the same loop only;
// real sockets do not follow the clock.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "bridge/base/clock.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"

namespace bridge {

// A task on the loop, started by the constructor. Time moves in steps: how finely it is measured.
template <class T>
class FakeTimeTask {
 public:
  template <class Body>
  FakeTimeTask(FakeClock& clock, EventLoop& loop, Body body,
               absl::Duration step = absl::Milliseconds(10))
      : clock_(clock), loop_(loop), step_(step) {
    loop_.RunAndWait([this, body = std::move(body)]() mutable {
      auto store = [this, body = std::move(body)]() mutable -> Task<void> {
        value_.emplace(co_await body());
      };
      Spawn(&cancel_, std::move(store), [this] { done_ = true; });
    });
  }
  FakeTimeTask(const FakeTimeTask&) = delete;
  ~FakeTimeTask() { (void)Finish(); }

  bool done() {
    Settle();
    return done_;
  }
  void Cancel() {
    loop_.RunAndWait([this] { cancel_.Cancel(); });
  }
  // Lets `time` pass, or less when the task ends.
  void Pass(absl::Duration time) {
    for (absl::Duration step; time > absl::ZeroDuration() && !done(); time -= step) {
      step = std::min(time, step_);
      clock_.Advance(step);
    }
    Settle();
  }
  // Lets time pass until the task ends.
  const T& Finish() {
    while (!done()) clock_.Advance(step_);
    return *value_;
  }

 private:
  // Everything that is due has run: a turn for the timers and one for what they posted.
  void Settle() {
    for (int i = 0; i < 3; ++i) loop_.RunAndWait([] {});
  }

  FakeClock& clock_;
  EventLoop& loop_;
  const absl::Duration step_;
  CancelSource cancel_;
  std::optional<T> value_;
  std::atomic<bool> done_ = false;
};

template <class Body>
auto RunInFakeTime(FakeClock& clock, EventLoop& loop, Body body,
                   absl::Duration step = absl::Milliseconds(10)) {
  using T = decltype(std::declval<decltype(body())>().await_resume());
  FakeTimeTask<T> task(clock, loop, std::move(body), step);
  return task.Finish();
}

}  // namespace bridge
