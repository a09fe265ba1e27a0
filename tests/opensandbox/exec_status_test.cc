// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_status.h"

#include <gtest/gtest.h>

#include "bridge/base/error.h"

namespace bridge {
namespace {

constexpr absl::Duration kNone = absl::InfiniteDuration();

TEST(WithTimeout, AKillAtTheTimeoutIsTheTimeout) {
  EXPECT_EQ(WithTimeout({9, false}, absl::Seconds(2), absl::Milliseconds(2003)),
            Outcome(TimedOut{absl::Seconds(2)}));
  EXPECT_EQ(WithTimeout({9, false}, absl::Seconds(2), absl::Milliseconds(1990)),
            Outcome(TimedOut{absl::Seconds(2)}))
      << "the daemon's clock started a moment before ours";
}

TEST(WithTimeout, AnyOtherDeathIsWhatItIs) {
  EXPECT_EQ(WithTimeout({9, false}, absl::Seconds(2), absl::Seconds(1)), Outcome(Signalled{9}));
  EXPECT_EQ(WithTimeout({9, false}, kNone, absl::Hours(1)), Outcome(Signalled{9}));
  EXPECT_EQ(WithTimeout({11, true}, absl::Seconds(2), absl::Seconds(3)),
            Outcome(Signalled{11, true}));
}

TEST(RanFor, ByTheRecordsOwnTimes) {
  const absl::Time t = absl::FromUnixSeconds(100);
  EXPECT_EQ(RanFor({.started_at = t, .finished_at = t + absl::Seconds(3)}), absl::Seconds(3));
  EXPECT_EQ(RanFor({.started_at = t}), std::nullopt);
  EXPECT_EQ(RanFor({.started_at = t, .finished_at = t - absl::Seconds(3)}), absl::ZeroDuration());
}

TEST(IsSandboxOver, OnlyWhatCannotComeBack) {
  const auto not_running = [](std::string state) {
    return MakeError(ErrorReason::ERROR_REASON_SANDBOX_NOT_RUNNING, "it does not run",
                     {.metadata = {{"state", std::move(state)}}});
  };
  EXPECT_TRUE(IsSandboxOver(MakeError(ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND, "gone")));
  EXPECT_TRUE(IsSandboxOver(not_running("Failed")));
  EXPECT_TRUE(IsSandboxOver(not_running("Terminated")));
  for (const char* state : {"Paused", "Resuming", "Stopping", "Pending", "Unknown", ""}) {
    EXPECT_FALSE(IsSandboxOver(not_running(state))) << state;
  }
  EXPECT_FALSE(IsSandboxOver(MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE, "away")));
  EXPECT_FALSE(IsSandboxOver(absl::OkStatus()));
}

TEST(IsPausedState, OnlyWhatGoesOn) {
  for (const char* state : {"Paused", "Pausing", "Resuming"}) EXPECT_TRUE(IsPausedState(state));
  for (const char* state : {"", "Running", "Failed", "Terminated", "paused"}) {
    EXPECT_FALSE(IsPausedState(state));
  }
}

}  // namespace
}  // namespace bridge
