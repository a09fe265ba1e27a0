// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;

TEST(Labels, KeysAndValues) {
  for (const char* good : {"a", "team", "example.org/run", "a.b-c_d", "A1", "x-y.z/Q"}) {
    EXPECT_TRUE(IsLabelKey(good)) << good;
  }
  const std::string long_name(64, 'x');
  for (const std::string& bad :
       {std::string(""), std::string("a b"), std::string("-a"), std::string("a-"),
        std::string("/a"), std::string("a/"), std::string("a/b/c"), std::string("Ex/a"),
        std::string("ex_a/b"), std::string("ü"), long_name}) {
    EXPECT_FALSE(IsLabelKey(bad)) << bad;
  }
  for (const char* good : {"", "a", "1.2-3_4", "A"}) EXPECT_TRUE(IsLabelValue(good)) << good;
  for (const char* bad : {" ", "-b", "b.", "a/b", "a:b", "ü"})
    EXPECT_FALSE(IsLabelValue(bad)) << bad;
  EXPECT_TRUE(IsLabelValue(std::string(63, 'x')));
  EXPECT_FALSE(IsLabelValue(long_name));
}

TEST(Labels, FirstProblemIsNamed) {
  EXPECT_FALSE(CheckLabels({{"a", "b"}, {"x.y/z", ""}}).has_value());
  EXPECT_THAT(CheckLabels({{"a", "b c"}})->body["message"].get<std::string>(),
              HasSubstr("Metadata value 'b c' is invalid"));
  EXPECT_THAT(CheckLabels({{"opensandbox.io/x", "1"}})->body["message"].get<std::string>(),
              HasSubstr("reserved prefix"));
  EXPECT_EQ(CheckLabels({{"", "b"}})->body["code"], "SANDBOX::INVALID_METADATA_LABEL");
}

TEST(Quantities, Cpu) {
  EXPECT_THAT(ParseCpuMillis("500m"), Optional(500));
  EXPECT_THAT(ParseCpuMillis("1"), Optional(1000));
  EXPECT_THAT(ParseCpuMillis("0.25"), Optional(250));
  for (const char* bad : {"", "0", "m", "abc", "-1", "1x", "inf", "nan", "1e9"}) {
    EXPECT_EQ(ParseCpuMillis(bad), std::nullopt) << bad;
  }
}

TEST(Quantities, Memory) {
  EXPECT_THAT(ParseMemoryBytes("512Mi"), Optional(512LL << 20));
  EXPECT_THAT(ParseMemoryBytes("2Gi"), Optional(2LL << 30));
  EXPECT_THAT(ParseMemoryBytes("256M"), Optional(256'000'000));
  EXPECT_THAT(ParseMemoryBytes("268435456"), Optional(268435456));
  for (const char* bad : {"", "Mi", "12xyz", "1.5Gi", "0", "-1Mi", "99999999999Ti"}) {
    EXPECT_EQ(ParseMemoryBytes(bad), std::nullopt) << bad;
  }
}

TEST(Images, References) {
  for (const char* good : {"python", "python:3.12", "osb-base:latest", "127.0.0.1:5999/x:1",
                           "registry.example/team/tool:v1.2_x", "a/b@sha256:00", "Registry:1/a"}) {
    EXPECT_TRUE(IsImageReference(good)) << good;
  }
  for (const std::string& bad :
       {std::string(""), std::string("BAD IMAGE"), std::string("a:"), std::string("a//b"),
        std::string("../a"), std::string("a/.."), std::string("Upper"), std::string("a:b c"),
        std::string("/a"), std::string(5000, 'x')}) {
    EXPECT_FALSE(IsImageReference(bad)) << bad;
  }
}

TEST(Times, AreWrittenAsTheServerWritesThem) {
  const absl::Time whole = absl::FromUnixSeconds(1795970796);
  EXPECT_EQ(api::FormatTime(whole), "2026-11-29T16:46:36Z");
  EXPECT_EQ(api::FormatTime(whole + absl::Milliseconds(91)), "2026-11-29T16:46:36.091000Z");
  EXPECT_EQ(FormatLogTime(whole), "2026-11-29T16:46:36.000000000Z");
  EXPECT_EQ(FormatDockerTime(whole + absl::Nanoseconds(120)), "2026-11-29T16:46:36.00000012Z");
}

std::optional<absl::Time> ParseTimeOf(const Json& value, std::string* problem = nullptr) {
  ValidationErrors errors;
  const auto time = ParseTimeField(value, {"t"}, errors);
  if (problem != nullptr)
    *problem = errors.empty() ? "" : errors.ToFailure().body["detail"][0]["type"];
  return time;
}

TEST(Times, AreReadLeniently) {
  const absl::Time want = absl::FromUnixSeconds(1795973999);
  EXPECT_THAT(ParseTimeOf("2026-11-29T17:39:59Z"), Optional(want));
  EXPECT_THAT(ParseTimeOf("2026-11-29T19:39:59.091+02:00"),
              Optional(want + absl::Milliseconds(91)));
  EXPECT_THAT(ParseTimeOf("2026-11-29T17:39:59"), Optional(want)) << "naive is UTC";
  EXPECT_THAT(ParseTimeOf("2026-11-29 17:39:59+00:00"), Optional(want));
  EXPECT_THAT(ParseTimeOf(1795973999), Optional(want));
  EXPECT_THAT(ParseTimeOf("1795973999"), Optional(want));
  EXPECT_THAT(ParseTimeOf(1795973999000), Optional(want)) << "too large for seconds";
  std::string problem;
  for (const char* bad : {"tomorrow", "2026-13-01T00:00:00Z", ""}) {
    EXPECT_EQ(ParseTimeOf(bad, &problem), std::nullopt);
    EXPECT_EQ(problem, "datetime_from_date_parsing") << bad;
  }
  ParseTimeOf(Json::array(), &problem);
  EXPECT_EQ(problem, "datetime_type");
}

TEST(Since, DurationsAndTimes) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  EXPECT_THAT(ParseSince("1h", now), Optional(now - absl::Hours(1)));
  EXPECT_THAT(ParseSince("10m", now), Optional(now - absl::Minutes(10)));
  EXPECT_THAT(ParseSince("30s", now), Optional(now - absl::Seconds(30)));
  EXPECT_THAT(ParseSince("1970-01-01T00:00:05Z", now), Optional(absl::FromUnixSeconds(5)));
  for (const char* bad : {"", "zz", "h", "-1h"})
    EXPECT_EQ(ParseSince(bad, now), std::nullopt) << bad;
}

TEST(Filter, IsAQueryOfItsOwn) {
  std::map<std::string, std::string> filter;
  EXPECT_FALSE(ParseMetadataFilter("team=core&example.org%2Frun=r+2&e=", &filter).has_value());
  EXPECT_THAT(filter,
              ElementsAre(Pair("e", ""), Pair("example.org/run", "r 2"), Pair("team", "core")));
  EXPECT_FALSE(ParseMetadataFilter("", &filter).has_value());
  EXPECT_EQ(ParseMetadataFilter("team", &filter)->body["message"],
            "Invalid metadata format: bad query field: 'team'");
}

}  // namespace
}  // namespace bridge::local::api
