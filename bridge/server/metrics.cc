// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/base/error.h"
#include "prometheus/text_serializer.h"

namespace bridge {
namespace {

// Seconds. Unary calls take 0.2 ms to 30 s, streams up to hours.
const std::vector<double> kBuckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                      0.5,    1,     2.5,    5,     10,   30,    60,   300, 3600};

std::string CodeName(absl::StatusCode code) {
  return code == absl::StatusCode::kOk ? "OK" : absl::StatusCodeToString(code);
}

double ResidentBytes() {
  long total = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const int n = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return n == 2 ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

double CountEntries(const char* folder) {
  DIR* dir = opendir(folder);
  if (dir == nullptr) return 0;
  int entries = 0;
  while (readdir(dir) != nullptr) ++entries;
  closedir(dir);
  return entries - 2;  // . and ..
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Metrics::Metrics()
    : calls_(prometheus::BuildCounter()
                 .Name("sandbox_bridge_calls_total")
                 .Help("Calls that ended, refused ones included.")
                 .Register(registry_)),
      running_(prometheus::BuildGauge()
                   .Name("sandbox_bridge_calls_running")
                   .Help("Calls that run now.")
                   .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("sandbox_bridge_call_seconds")
                   .Help("From the arrival of a call to its end.")
                   .Register(registry_)) {
  AddProcess();
}

void Metrics::AddProcess() {
  AddGauge("process_resident_memory_bytes", "Resident memory.", ResidentBytes);
  AddGauge("process_open_fds", "Open file descriptors.", [] {
    return CountEntries("/proc/self/fd") - 1;  // the folder itself
  });
  AddGauge("process_threads", "Threads.", [] { return CountEntries("/proc/self/task"); });
  AddCounter("process_cpu_seconds_total", "User and system time.", CpuSeconds);
}

Metrics::OfMethod& Metrics::Of(const Method& method) {
  const auto it = methods_.find(method.name);
  if (it != methods_.end()) return it->second;
  const prometheus::Labels labels = {{"method", method.name}};
  return methods_
      .emplace(method.name, OfMethod{&running_.Add(labels), &seconds_.Add(labels, kBuckets), {}})
      .first->second;
}

void Metrics::OnStart(const Method& method) {
  std::lock_guard<std::mutex> lock(mu_);
  Of(method).running->Increment();
}

void Metrics::OnEnd(const CallRecord& record) {
  std::lock_guard<std::mutex> lock(mu_);
  OfMethod& of = Of(record.method);
  of.running->Decrement();
  of.seconds->Observe(absl::ToDoubleSeconds(record.duration));
  prometheus::Counter*& ended =
      of.ended[{static_cast<int>(record.code), static_cast<int>(record.reason)}];
  if (ended == nullptr) {
    const bool ok = record.code == absl::StatusCode::kOk;
    ended = &calls_.Add({{"method", record.method.name},
                         {"code", CodeName(record.code)},
                         {"reason", ok ? "" : std::string(ReasonName(record.reason))}});
  }
  ended->Increment();
}

void Metrics::AddGauge(const std::string& name, const std::string& help,
                       std::function<double()> read) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
  std::lock_guard<std::mutex> lock(mu_);
  reads_.push_back({.read = std::move(read), .gauge = &family.Add({})});
}

void Metrics::AddCounter(const std::string& name, const std::string& help,
                         std::function<double()> read) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  std::lock_guard<std::mutex> lock(mu_);
  reads_.push_back({.read = std::move(read), .counter = &family.Add({})});
}

std::string Metrics::Serialize() {
  std::vector<Read> reads;
  {
    std::lock_guard<std::mutex> lock(mu_);
    reads = reads_;
  }
  // Without the lock: a reader may ask an event loop, which may be waiting for it in OnEnd().
  for (const Read& entry : reads) {
    const double value = entry.read();
    if (entry.gauge != nullptr) {
      entry.gauge->Set(value);
    } else {
      entry.counter->Increment(std::max(0.0, value - entry.counter->Value()));
    }
  }
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace bridge
