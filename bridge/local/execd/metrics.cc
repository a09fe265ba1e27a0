// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/metrics.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/time/clock.h"
#include "bridge/local/execd/event.h"
#include "bridge/local/execd/reply.h"

namespace bridge::local::execd {
namespace {

constexpr absl::Duration kSample = absl::Seconds(1);
constexpr absl::Duration kWatchInterval = absl::Seconds(1);  // between samples

std::string ReadProc(const char* path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Takes a second. Nothing when the client went meanwhile.
std::optional<std::string> Sample(http::Exchange& exchange) {
  const auto before = ParseCpuTimes(ReadProc("/proc/stat"));
  if (!exchange.Sleep(kSample)) return std::nullopt;
  const auto after = ParseCpuTimes(ReadProc("/proc/stat"));
  const auto memory = ParseMemory(ReadProc("/proc/meminfo"));
  if (!before || !after || !memory) return "";
  return MetricsJson(static_cast<int>(std::thread::hardware_concurrency()),
                     BusyPercent(*before, *after), *memory, absl::ToUnixMillis(absl::Now()));
}

void Metrics(http::Exchange& exchange) {
  const auto json = Sample(exchange);
  if (!json) return;
  if (json->empty()) {
    ReplyError(exchange, {500, kRuntimeError, "error reading runtime metrics"});
  } else {
    ReplyJson(exchange, 200, *json);
  }
}

// One object and one line end every two seconds, for ever.
void Watch(http::Exchange& exchange) {
  HttpEventStream stream(exchange);
  while (stream.Sleep(kWatchInterval)) {
    const auto json = Sample(exchange);
    if (!json) return;
    const std::string line =
        json->empty() ? std::string("{\"error\":\"error reading runtime metrics\"}") : *json;
    if (!stream.Send(line + "\n")) return;
  }
}

}  // namespace

std::optional<CpuTimes> ParseCpuTimes(std::string_view proc_stat) {
  if (!proc_stat.starts_with("cpu ")) return std::nullopt;
  std::istringstream line{std::string(proc_stat.substr(4, proc_stat.find('\n') - 4))};
  // user nice system idle iowait irq softirq steal; guest time is part of user.
  CpuTimes out;
  int64_t value = 0;
  int field = 0;
  for (; field < 8 && line >> value; ++field) {
    out.total += value;
    if (field != 3 && field != 4) out.busy += value;
  }
  if (field < 4) return std::nullopt;
  return out;
}

double BusyPercent(const CpuTimes& before, const CpuTimes& after) {
  const int64_t total = after.total - before.total;
  const int64_t busy = after.busy - before.busy;
  if (busy <= 0) return 0;
  if (total <= 0) return 100;
  return std::min(100.0, static_cast<double>(busy) / static_cast<double>(total) * 100);
}

std::optional<Memory> ParseMemory(std::string_view meminfo) {
  std::istringstream in{std::string(meminfo)};
  double total = -1, free = 0, buffers = 0, cached = 0, reclaimable = 0;
  std::string name, unit;
  double kib = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    if (!(fields >> name >> kib)) continue;
    if (name == "MemTotal:") total = kib;
    if (name == "MemFree:") free = kib;
    if (name == "Buffers:") buffers = kib;
    if (name == "Cached:") cached = kib;
    if (name == "SReclaimable:") reclaimable = kib;
  }
  if (total < 0) return std::nullopt;
  return Memory{total / 1024, std::max(0.0, total - free - buffers - cached - reclaimable) / 1024};
}

std::string GoNumber(double value) {
  char buffer[400];
  const auto result =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  return std::string(buffer, result.ptr);
}

std::string MetricsJson(int cpu_count, double cpu_used_pct, const Memory& memory, int64_t now_ms) {
  return "{\"cpu_count\":" + std::to_string(cpu_count) +
         ",\"cpu_used_pct\":" + GoNumber(cpu_used_pct) +
         ",\"mem_total_mib\":" + GoNumber(memory.total_mib) +
         ",\"mem_used_mib\":" + GoNumber(memory.used_mib) +
         ",\"timestamp\":" + std::to_string(now_ms) + "}";
}

void AddMetricsRoutes(http::Router& router) {
  router.Add("GET", "/metrics", Metrics);
  router.Add("GET", "/metrics/watch", Watch);
}

}  // namespace bridge::local::execd
