// SPDX-License-Identifier: Apache-2.0
//
// server/metrics.h — what the bridge counts, for Prometheus.
//
// Labels are bounded: method, code, reason. Never an id, a tenant or anything that a caller
// chooses. Any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bridge/service/call_host.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace bridge {

class Metrics final : public CallObserver {
 public:
  Metrics();

  void OnStart(const Method& method) override;
  void OnEnd(const CallRecord& record) override;

  // A value that is read when somebody asks. `read` must be callable until the Metrics are gone.
  void AddGauge(const std::string& name, const std::string& help, std::function<double()> read);
  // The same for one that only grows.
  void AddCounter(const std::string& name, const std::string& help, std::function<double()> read);

  // The text format, version 0.0.4.
  std::string Serialize();

 private:
  struct OfMethod {
    prometheus::Gauge* running;
    prometheus::Histogram* seconds;
    std::map<std::pair<int, int>, prometheus::Counter*> ended;  // by code and reason
  };
  struct Read {
    std::function<double()> read;
    prometheus::Gauge* gauge = nullptr;
    prometheus::Counter* counter = nullptr;
  };
  OfMethod& Of(const Method& method);  // under mu_
  void AddProcess();

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Gauge>& running_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  std::mutex mu_;
  std::unordered_map<std::string_view, OfMethod> methods_;  // guarded by mu_; names are literals
  std::vector<Read> reads_;                                 // guarded by mu_
};

}  // namespace bridge
