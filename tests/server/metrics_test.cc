// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace bridge {
namespace {

using R = ErrorReason;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Method kMethod = UnaryMethod("s/M");
constexpr Method kOther = StreamingMethod("s/Other");

TEST(Metrics, CountsCallsByMethodCodeAndReason) {
  Metrics metrics;
  for (int i = 0; i < 3; ++i) {
    metrics.OnStart(kMethod);
    metrics.OnEnd({.method = kMethod, .duration = absl::Milliseconds(2)});
  }
  metrics.OnStart(kOther);
  metrics.OnEnd({.method = kOther,
                 .code = absl::StatusCode::kUnavailable,
                 .reason = R::ERROR_REASON_DRAINING,
                 .message = "secret message",
                 .tenant = "secret-tenant",
                 .trace_id = "secret-trace"});
  metrics.OnStart(kOther);
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text,
              HasSubstr("sandbox_bridge_calls_total{code=\"OK\",method=\"s/M\",reason=\"\"} 3"));
  EXPECT_THAT(text, HasSubstr("sandbox_bridge_calls_total{code=\"UNAVAILABLE\",method=\"s/Other\","
                              "reason=\"DRAINING\"} 1"));
  EXPECT_THAT(text, HasSubstr("sandbox_bridge_calls_running{method=\"s/M\"} 0"));
  EXPECT_THAT(text, HasSubstr("sandbox_bridge_calls_running{method=\"s/Other\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("sandbox_bridge_call_seconds_bucket{method=\"s/M\",le=\"0.0025\"} 3"));
  EXPECT_THAT(text, HasSubstr("sandbox_bridge_call_seconds_bucket{method=\"s/M\",le=\"0.001\"} 0"));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(Metrics, ReadsTheProcess) {
  Metrics metrics;
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, ContainsRegex("process_resident_memory_bytes [1-9][0-9]{6,}"));
  EXPECT_THAT(text, ContainsRegex("process_open_fds [1-9]"));
  EXPECT_THAT(text, ContainsRegex("process_threads [1-9]"));
  EXPECT_THAT(text, HasSubstr("process_cpu_seconds_total"));
}

TEST(Metrics, ReadsValuesWhenAsked) {
  Metrics metrics;
  double value = 1;
  metrics.AddGauge("g", "a gauge", [&] { return value; });
  metrics.AddCounter("c_total", "a counter", [&] { return value; });
  EXPECT_THAT(metrics.Serialize(), HasSubstr("\ng 1\n"));
  value = 5;
  std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr("\ng 5\n"));
  EXPECT_THAT(text, HasSubstr("\nc_total 5\n"));
  value = 2;  // a counter never falls
  text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr("\ng 2\n"));
  EXPECT_THAT(text, HasSubstr("\nc_total 5\n"));
}

// A reader may wait for a thread that ends a call meanwhile.
TEST(Metrics, AReaderMayWaitForACallToEnd) {
  Metrics metrics;
  metrics.AddGauge("g", "a gauge", [&] {
    std::thread([&] { metrics.OnEnd({.method = kMethod}); }).join();
    return 1.0;
  });
  metrics.OnStart(kMethod);
  EXPECT_THAT(metrics.Serialize(), HasSubstr("sandbox_bridge_calls_running{method=\"s/M\"} 0"));
}

TEST(Metrics, CountsRightFromManyThreads) {
  Metrics metrics;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        metrics.OnStart(kMethod);
        metrics.OnEnd({.method = kMethod, .duration = absl::Milliseconds(i)});
        if (i % 100 == 0) (void)metrics.Serialize();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr("reason=\"\"} 4000"));
  EXPECT_THAT(text, HasSubstr("sandbox_bridge_calls_running{method=\"s/M\"} 0"));
}

}  // namespace
}  // namespace bridge
