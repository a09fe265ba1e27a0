// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/timestamps.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge {
namespace {

// 2026-09-01T00:00:00Z, by `date -u -d 2026-09-01 +%s`.
constexpr int64_t kSeptember = 1788220800;

absl::Time At(int64_t seconds, int64_t nanos = 0) {
  return absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanos);
}

TEST(ParseTimestamp, OddButLegalSpellingsAreTheSameInstant) {
  for (const char* text :
       {"2026-09-01T00:00:00Z", "2026-09-01T00:00:00.000000+00:00", "2026-09-01T08:00:00+08:00",
        "2026-09-01T00:00:00.000000000Z", "2026-09-01t00:00:00z", "2026-09-01T00:00:00",
        "2026-09-01 00:00:00", "2026-08-31T22:30:00-0130", "2026-09-01T02:00:00+02",
        "2026-08-31T23:59:60Z", "2026-09-01T00:00:00.0Z", "2026-09-01T00:00:00-00:00"}) {
    EXPECT_EQ(ParseTimestamp(text), At(kSeptember)) << text;
  }
}

TEST(ParseTimestamp, KeepsFractionsToTheNanosecond) {
  EXPECT_EQ(ParseTimestamp("2026-09-01T00:00:00.123456+00:00"), At(kSeptember, 123456000));
  EXPECT_EQ(ParseTimestamp("2026-09-01T00:00:00.123456789Z"), At(kSeptember, 123456789));
  EXPECT_EQ(ParseTimestamp("2026-09-01T00:00:00.5Z"), At(kSeptember, 500000000));
  EXPECT_EQ(ParseTimestamp("2026-09-01T00:00:00,5Z"), At(kSeptember, 500000000));
  EXPECT_EQ(ParseTimestamp("2026-09-01T00:00:00.12345678999999999999Z"), At(kSeptember, 123456789));
}

TEST(ParseTimestamp, RefusesEverythingElse) {
  for (const char* text : {"",
                           "x",
                           "2026-09-01",
                           "2026-09-01T",
                           "2026-09-01T00:00",
                           "2026-09-01T00:00:00.Z",
                           "2026-13-01T00:00:00Z",
                           "2026-02-30T00:00:00Z",
                           "2026-00-10T00:00:00Z",
                           "2026-09-01T24:00:00Z",
                           "2026-09-01T00:60:00Z",
                           "2026-09-01T00:00:61Z",
                           "2026-09-01T00:00:00Zx",
                           "2026-09-01T00:00:00+",
                           "2026-09-01T00:00:00+25:00",
                           "2026-09-01T00:00:00+08:0",
                           "2026-9-1T00:00:00Z",
                           "tomorrow",
                           "1795972999",
                           "-026-09-01T00:00:00Z",
                           "2026-09-01T00:00:00 Z"}) {
    EXPECT_EQ(ParseTimestamp(text), std::nullopt) << text;
  }
}

TEST(ParseTimestamp, NoPrefixOfAStampIsMisread) {
  const std::string text = "2026-09-01T00:00:00.123456+08:00";
  for (size_t n = 0; n < text.size(); ++n) {
    const auto time = ParseTimestamp(text.substr(0, n));
    // Cut inside the fraction or the zone it may be a stamp of its own; never another day.
    if (time) {
      EXPECT_LT(*time - At(kSeptember), absl::Hours(24)) << n;
    }
  }
}

TEST(FormatTimestamp, IsUtcAndShort) {
  EXPECT_EQ(FormatTimestamp(At(kSeptember)), "2026-09-01T00:00:00Z");
  EXPECT_EQ(FormatTimestamp(At(kSeptember, 250'000'000)), "2026-09-01T00:00:00.25Z");
  EXPECT_EQ(FormatTimestamp(At(kSeptember, 123'456'789)), "2026-09-01T00:00:00.123456Z");
}

TEST(ParseHttpDate, TheFormThatServersSend) {
  // From a recorded answer; the instant by `date -u -d '29 Nov 2026 16:46:35' +%s`.
  EXPECT_EQ(ParseHttpDate("Sun, 29 Nov 2026 16:46:35 GMT"), At(1795970795));
  for (const char* text : {"", "garbage", "29 Nov 2026", "2026-11-29T16:46:35Z", "2"}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  }
}

TEST(ParseRetryAfter, SecondsDatesAndGarbage) {
  const absl::Time now = At(1795970795);
  EXPECT_EQ(ParseRetryAfter("2", now), absl::Seconds(2));
  EXPECT_EQ(ParseRetryAfter("0", std::nullopt), absl::ZeroDuration());
  EXPECT_EQ(ParseRetryAfter("-7", now), absl::ZeroDuration());
  EXPECT_EQ(ParseRetryAfter("Sun, 29 Nov 2026 16:46:40 GMT", now), absl::Seconds(5));
  EXPECT_EQ(ParseRetryAfter("Sun, 29 Nov 2026 16:40:00 GMT", now), absl::ZeroDuration());
  EXPECT_EQ(ParseRetryAfter("99999999999999999999999", now), absl::InfiniteDuration());
  // Without the server's clock a date says nothing.
  EXPECT_EQ(ParseRetryAfter("Sun, 29 Nov 2026 16:46:40 GMT", std::nullopt), std::nullopt);
  for (const char* text : {"", "soon", "2s", "1.5", "0x10"}) {
    EXPECT_EQ(ParseRetryAfter(text, now), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace bridge
