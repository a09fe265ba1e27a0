// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/metrics.h"

#include <gtest/gtest.h>

namespace bridge::local::execd {
namespace {

TEST(Metrics, CpuTimes) {
  const auto times = ParseCpuTimes("cpu  100 1 50 800 20 3 4 2 7 8\ncpu0 1 1 1 1\n");
  ASSERT_TRUE(times.has_value());
  EXPECT_EQ(times->total, 980);
  EXPECT_EQ(times->busy, 160);
  EXPECT_TRUE(ParseCpuTimes("cpu  1 2 3 4").has_value());  // an old kernel
  EXPECT_FALSE(ParseCpuTimes("cpu  1 2 3").has_value());
  EXPECT_FALSE(ParseCpuTimes("").has_value());
  EXPECT_FALSE(ParseCpuTimes("cpu0 1 2 3 4").has_value());
}

TEST(Metrics, BusyPercent) {
  EXPECT_DOUBLE_EQ(BusyPercent({100, 50}, {300, 100}), 25);
  EXPECT_DOUBLE_EQ(BusyPercent({100, 50}, {100, 50}), 0);
  EXPECT_DOUBLE_EQ(BusyPercent({100, 50}, {200, 40}), 0);
  EXPECT_DOUBLE_EQ(BusyPercent({100, 50}, {100, 60}), 100);
}

TEST(Metrics, Memory) {
  const auto memory = ParseMemory(
      "MemTotal:       24684096 kB\nMemFree:        20000000 kB\nMemAvailable:   1 kB\n"
      "Buffers:          100000 kB\nCached:          3000000 kB\nSReclaimable:     584096 kB\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_DOUBLE_EQ(memory->total_mib, 24105.5625);  // as recorded
  EXPECT_DOUBLE_EQ(memory->used_mib, 1000000.0 / 1024);
  EXPECT_FALSE(ParseMemory("").has_value());
}

// The shape of the recording "metrics".
TEST(Metrics, Json) {
  EXPECT_EQ(MetricsJson(2, 1.4925373134213549, {24105.5625, 648.18359375}, 1795970673642),
            "{\"cpu_count\":2,\"cpu_used_pct\":1.4925373134213549,\"mem_total_mib\":24105.5625,"
            "\"mem_used_mib\":648.18359375,\"timestamp\":1795970673642}");
  EXPECT_EQ(GoNumber(0), "0");
  EXPECT_EQ(GoNumber(100), "100");
}

}  // namespace
}  // namespace bridge::local::execd
