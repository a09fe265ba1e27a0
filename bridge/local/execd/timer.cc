// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/timer.h"

#include <utility>

namespace bridge::local::execd {

Timer::~Timer() {
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Timer::After(absl::Duration delay, std::function<void()> call) {
  const std::lock_guard lock(mu_);
  calls_.emplace(Clock::now() + absl::ToChronoNanoseconds(delay), std::move(call));
  changed_.notify_all();
}

void Timer::Loop() {
  std::unique_lock lock(mu_);
  while (!stopping_) {
    if (calls_.empty()) {
      changed_.wait(lock);
    } else if (calls_.begin()->first > Clock::now()) {
      const auto next = calls_.begin()->first;  // the entry may be gone when the wait returns
      changed_.wait_until(lock, next);
    } else {
      const auto call = std::move(calls_.extract(calls_.begin()).mapped());
      lock.unlock();
      call();
      lock.lock();
    }
  }
}

}  // namespace bridge::local::execd
