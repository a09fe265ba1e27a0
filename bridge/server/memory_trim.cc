// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/memory_trim.h"

#include <malloc.h>

#include <algorithm>

namespace bridge {

MemoryTrim::MemoryTrim(absl::Duration period, size_t worth)
    : worth_(worth), thread_("memory_trim", period, [this] { Turn(); }) {}

void MemoryTrim::Turn() {
  const size_t free = mallinfo2().fordblks;
  kept_ = std::min(kept_, free);
  if (free - kept_ < worth_) return;
  malloc_trim(0);
  kept_ = mallinfo2().fordblks;
}

}  // namespace bridge
