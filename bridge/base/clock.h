// SPDX-License-Identifier: Apache-2.0
//
// base/clock.h — where time comes from, so that tests can own it.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace bridge {

// Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time. Never compare it with a time that another machine made.
  virtual absl::Time Now() = 0;
  // Time for measuring and for timers: never jumps back. Its zero means nothing.
  virtual absl::Duration Monotonic() = 0;
  // Calls `wake` whenever time was moved by hand, so that a sleeping loop looks again. The real
  // clock never does. `wake` must be callable from any thread until the clock is destroyed.
  virtual void OnAdvance(std::function<void()> wake) { (void)wake; }
  // Does time pass by itself? A loop on a clock that does not must not sleep by it.
  virtual bool passes() const { return true; }

  static Clock& Real();
};

// Stands still until Advance(). For tests.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : start_(start) {}
  absl::Time Now() override;
  absl::Duration Monotonic() override;
  void OnAdvance(std::function<void()> wake) override;
  bool passes() const override { return false; }

  void Advance(absl::Duration d);

 private:
  std::mutex mu_;
  const absl::Time start_;
  absl::Duration elapsed_;
  std::vector<std::function<void()>> wakes_;
};

}  // namespace bridge
