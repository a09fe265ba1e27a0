// SPDX-License-Identifier: Apache-2.0
//
// server/memory_trim.h — gives memory back to the system after a burst.
//
// The C library keeps what was freed below something that is still in use: after a storm of a
// thousand calls, some 30 MiB that nobody needs. Every `period` a thread of its own looks whether
// at least `worth` bytes are free in the heap, and only then returns them, which takes about a
// millisecond.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace bridge {

class MemoryTrim {
 public:
  explicit MemoryTrim(absl::Duration period = absl::Seconds(5), size_t worth = 8 << 20);
  ~MemoryTrim();  // joins
  MemoryTrim(const MemoryTrim&) = delete;
  MemoryTrim& operator=(const MemoryTrim&) = delete;

 private:
  void Run(absl::Duration period, size_t worth);

  std::mutex mu_;
  std::condition_variable changed_;
  bool stop_ = false;  // guarded by mu_
  std::thread thread_;
};

}  // namespace bridge
