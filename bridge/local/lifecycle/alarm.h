// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/alarm.h — wakes one waiting thread when something changed. Any thread.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/time/time.h"

namespace bridge::local::lifecycle {

class Alarm {
 public:
  uint64_t rings() const {
    const std::lock_guard lock(mu_);
    return rings_;
  }

  void Ring() {
    const std::lock_guard lock(mu_);
    ++rings_;
    changed_.notify_all();
  }

  // Every Wait from now on is false.
  void Stop() {
    const std::lock_guard lock(mu_);
    stopped_ = true;
    changed_.notify_all();
  }

  // Returns when there was a ring since `seen`, after `timeout`, or once a minute, since the wall
  // clock may have been set. False when stopped.
  bool Wait(uint64_t seen, absl::Duration timeout) {
    std::unique_lock lock(mu_);
    timeout = std::min(timeout, absl::Minutes(1));
    changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                      [&] { return stopped_ || rings_ != seen; });
    return !stopped_;
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  uint64_t rings_ = 0;
  bool stopped_ = false;
};

}  // namespace bridge::local::lifecycle
