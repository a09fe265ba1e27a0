// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/memory_trim.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "tests/fakes/sanitized.h"

namespace bridge {
namespace {

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Small blocks, of which one in a thousand stays: the heap cannot shrink from its end.
TEST(MemoryTrim, ReturnsWhatLiesBetween) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has its own heap";
  std::vector<std::unique_ptr<char[]>> kept;
  {
    std::vector<std::unique_ptr<char[]>> burst;
    for (int i = 0; i < 64'000; ++i) {
      auto& to = i % 1000 == 0 ? kept : burst;
      to.push_back(std::make_unique<char[]>(1000));  // zeroed, so that it is resident
    }
    kept.push_back(std::make_unique<char[]>(1000));
  }
  const int64_t before = ResidentBytes();
  const MemoryTrim trim(absl::Milliseconds(10), 8 << 20);
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (ResidentBytes() > before - (40 << 20) && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_LE(ResidentBytes(), before - (40 << 20));
}

TEST(MemoryTrim, EndsAtOnce) {
  const absl::Time begin = absl::Now();
  {
    const MemoryTrim trim(absl::Hours(1));
  }
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
}

}  // namespace
}  // namespace bridge
