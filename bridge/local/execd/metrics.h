// SPDX-License-Identifier: Apache-2.0
//
// local/execd/metrics.h — `/metrics`: what the whole machine uses, not what this container may. The
// parsers are pure; the routes belong to their connection's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bridge/local/http/router.h"

namespace bridge::local::execd {

// The first line of /proc/stat in ticks.
struct CpuTimes {
  int64_t total = 0;
  int64_t busy = 0;
};
std::optional<CpuTimes> ParseCpuTimes(std::string_view proc_stat);

// Percent of the time between two readings that was spent working, 0 to 100.
double BusyPercent(const CpuTimes& before, const CpuTimes& after);

// Of /proc/meminfo, in MiB. Used is what is neither free, nor buffers, nor cache.
struct Memory {
  double total_mib = 0;
  double used_mib = 0;
};
std::optional<Memory> ParseMemory(std::string_view meminfo);

// {"cpu_count":…,"cpu_used_pct":…,"mem_total_mib":…,"mem_used_mib":…,"timestamp":…}
std::string MetricsJson(int cpu_count, double cpu_used_pct, const Memory& memory, int64_t now_ms);

// A number as Go writes it: the fewest digits that mean it, no exponent for ordinary sizes.
std::string GoNumber(double value);

void AddMetricsRoutes(http::Router& router);

}  // namespace bridge::local::execd
