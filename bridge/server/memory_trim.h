// SPDX-License-Identifier: Apache-2.0
//
// server/memory_trim.h — gives memory back to the system after a burst.
//
// The C library keeps what was freed below something that is still in use: after a storm of a
// thousand calls, some 30 MiB that nobody needs. Every `period` a thread of its own looks whether
// at least `worth` bytes are free in the heap, and only then returns them, which takes about a
// millisecond.
#pragma once

#include <cstddef>

#include "absl/time/time.h"
#include "bridge/base/periodic_thread.h"

namespace bridge {

class MemoryTrim {
 public:
  explicit MemoryTrim(absl::Duration period = absl::Seconds(5), size_t worth = 8 << 20);

 private:
  void Turn();

  const size_t worth_;
  size_t kept_ = 0;        // free, but not to be had back: between what is in use
  PeriodicThread thread_;  // last: it uses the rest
};

}  // namespace bridge
