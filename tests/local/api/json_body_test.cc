// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/json_body.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bridge/base/utf8.h"

namespace bridge::local::api {
namespace {

// Messages and positions as Python 3.11's json.loads reports them.
TEST(Scan, FaultsAsPythonSeesThem) {
  struct Case {
    std::string text;
    std::string message;
    size_t position;
  };
  const std::vector<Case> cases = {
      {"{x", "Expecting property name enclosed in double quotes", 1},
      {R"({"image":{"uri":"osb)", "Unterminated string starting at", 16},
      {"", "Expecting value", 0},
      {"  ", "Expecting value", 2},
      {"[1,]", "Expecting value", 3},
      {"[1 2]", "Expecting ',' delimiter", 3},
      {R"({"a" 1})", "Expecting ':' delimiter", 5},
      {R"({"a":1 "b":2})", "Expecting ',' delimiter", 7},
      {R"({"a":1,})", "Expecting property name enclosed in double quotes", 7},
      {"{} {}", "Extra data", 3},
      {"01", "Extra data", 1},
      {"1.", "Extra data", 1},
      {"-", "Expecting value", 0},
      {"nul", "Expecting value", 0},
      {"\"a\nb\"", "Invalid control character at", 2},
      {R"("\x")", "Invalid \\escape", 1},
      {R"("\u12g4")", "Invalid \\uXXXX escape", 2},
      {"\"ü\" x", "Extra data", 4},  // characters, not bytes
      {"{\"a\":", "Expecting value", 5},
  };
  for (const Case& c : cases) {
    const JsonScan scan = ScanJson(c.text);
    ASSERT_TRUE(scan.fault.has_value()) << c.text;
    EXPECT_EQ(scan.fault->message, c.message) << c.text;
    EXPECT_EQ(scan.fault->position, c.position) << c.text;
  }
}

TEST(Scan, AcceptsWhatIsJson) {
  for (const char* good : {"null", " true ", "-0.5e+3", R"("é\u00e9\n")", "[]", "{}",
                           R"({"a":[1,{"b":null}],"c":false})", "1e5", "0"}) {
    const JsonScan scan = ScanJson(good);
    EXPECT_FALSE(scan.fault.has_value()) << good << ": " << scan.fault->message;
    EXPECT_FALSE(scan.has_nan);
  }
}

TEST(Scan, SeesNanAndDepth) {
  EXPECT_TRUE(ScanJson(R"({"a":NaN})").has_nan);
  EXPECT_TRUE(ScanJson("[-Infinity]").has_nan);
  EXPECT_TRUE(ScanJson(std::string(5000, '[')).too_deep);
  EXPECT_FALSE(ScanJson(std::string(500, '[') + std::string(500, ']')).too_deep);
}

TEST(Utf8, FollowsTheStandard) {
  for (const char* good : {"", "a", "é", "€", "𝄞", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(good)) << good;
  }
  for (const char* bad :
       {"\xff", "\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xC3("}) {
    EXPECT_FALSE(IsValidUtf8(bad)) << bad;
  }
}

Failure Refusal(std::string_view body, std::optional<std::string_view> type = "application/json") {
  Json value;
  const auto failure = ReadJsonBody(body, type, &value);
  EXPECT_TRUE(failure.has_value()) << body;
  return failure.value_or(Failure{});
}

TEST(Body, RefusalsAsRecorded) {
  EXPECT_EQ(
      Refusal("").body.dump(),
      R"({"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]})");
  EXPECT_EQ(Refusal("{x").body.dump(),
            R"({"detail":[{"type":"json_invalid","loc":["body",1],"msg":"JSON decode error",)"
            R"("input":{},"ctx":{"error":"Expecting property name enclosed in double quotes"}}]})");
  EXPECT_EQ(Refusal("{\"a\":\"\xff\"}").status, 400);
  EXPECT_EQ(Refusal(R"({"timeout":NaN})").status, 500);
  EXPECT_TRUE(Refusal(R"({"timeout":NaN})").body.is_null());
  EXPECT_EQ(Refusal(R"("\ud800")").status, 400) << "a lone surrogate";
}

TEST(Body, OtherTypesAreText) {
  Json value;
  EXPECT_FALSE(ReadJsonBody("{}", "text/plain", &value).has_value());
  EXPECT_EQ(value, "{}");
  for (const char* json :
       {"application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"}) {
    EXPECT_FALSE(ReadJsonBody("{}", json, &value).has_value());
    EXPECT_TRUE(value.is_object()) << json;
  }
  EXPECT_FALSE(ReadJsonBody("[1]", std::nullopt, &value).has_value());
  EXPECT_TRUE(value.is_array());
}

}  // namespace
}  // namespace bridge::local::api
