// SPDX-License-Identifier: Apache-2.0
//
// local/execd/timer.h — calls functions at points of (monotonic) time, in one thread of its own.
// Any thread may schedule. Calls must not block. The destructor drops what has not run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace bridge::local::execd {

class Timer {
 public:
  Timer() : thread_([this] { Loop(); }) {}
  ~Timer();

  void After(absl::Duration delay, std::function<void()> call);

 private:
  using Clock = std::chrono::steady_clock;
  void Loop();

  std::mutex mu_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> calls_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace bridge::local::execd
