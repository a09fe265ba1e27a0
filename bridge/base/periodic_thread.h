// SPDX-License-Identifier: Apache-2.0
//
// base/periodic_thread.h — a thread that does something small every so often, until it is
// destroyed.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace bridge {

class PeriodicThread {
 public:
  // `name` is the thread's, at most 15 bytes. The first turn comes after one `period`. Signals are
  // not the thread's business.
  PeriodicThread(const char* name, absl::Duration period, std::function<void()> turn);
  ~PeriodicThread();  // waits for the turn that is under way, for no other
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool stop_ = false;  // guarded by mu_
  std::thread thread_;
};

}  // namespace bridge
