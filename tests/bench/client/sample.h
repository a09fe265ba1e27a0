// SPDX-License-Identifier: Apache-2.0
//
// tests/bench/client/sample.h — what one measurement saw, and how it is printed for the driver: one
// JSON object on a line of standard output. Durations are seconds on the monotonic clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace bridge::bench {

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The value below which `fraction` of the values lie; 0 of none.
inline double Percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(fraction * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

struct Sample {
  double seconds = 0;             // from the first request to the last answer
  std::vector<double> latencies;  // of each call or event, where that is what is measured
  int64_t items = 0;              // calls, events or bytes that arrived
  int64_t failures = 0;           // a measurement with any is void
  std::string first_failure;      // for people

  void Fail(std::string why) {
    if (failures++ == 0) first_failure = std::move(why);
  }
  void Add(const Sample& other) {
    latencies.insert(latencies.end(), other.latencies.begin(), other.latencies.end());
    items += other.items;
    if (failures == 0) first_failure = other.first_failure;
    failures += other.failures;
  }
  void Print() const {
    const nlohmann::json line = {{"seconds", seconds},
                                 {"items", items},
                                 {"p50", Percentile(latencies, 0.50)},
                                 {"p99", Percentile(latencies, 0.99)},
                                 {"max", Percentile(latencies, 1.0)},
                                 {"slow", std::count_if(latencies.begin(), latencies.end(),
                                                        [](double s) { return s > 0.010; })},
                                 {"failures", failures},
                                 {"first_failure", first_failure}};
    std::cout << line.dump() << std::endl;
  }
};

// Calls `call` so many times, one after the other, after ten that are not counted. `call` returns
// what went wrong, or nothing; `before` runs outside of the measured time of each.
template <class Call, class Before>
Sample Timed(int calls, Call call, Before before) {
  constexpr int kWarmUp = 10;
  Sample sample;
  double start = Now();
  for (int i = -kWarmUp; i < calls; ++i) {
    if (i == 0) start = Now();
    if (i >= 0) before();
    const double begin = Now();
    std::string failure = call();
    if (!failure.empty()) sample.Fail(std::move(failure));
    if (i < 0) continue;
    sample.latencies.push_back(Now() - begin);
    ++sample.items;
  }
  sample.seconds = Now() - start;
  return sample;
}

template <class Call>
Sample Timed(int calls, Call call) {
  return Timed(calls, std::move(call), [] {});
}

}  // namespace bridge::bench
