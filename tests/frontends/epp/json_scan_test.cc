// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/json_scan.h"

#include <string>
#include <vector>

#include "frontends/epp/json.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

std::string Rewritten(std::string text) {
  ScanJson(&text);
  return text;
}

TEST(JsonScan, LeavesStrictJsonAsItIs) {
  const std::vector<std::string> lines = {
      R"({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": [1, -2.5e3, true, null]}})",
      R"({"text": "NaN Infinity \\ud800 \" \ud83d\ude00", "n": 12345678901234567890})",
      R"([])",
      R"("NaN")",
      "",
  };
  for (const std::string& line : lines) {
    std::string text = line;
    EXPECT_FALSE(ScanJson(&text).changed) << line;
    EXPECT_EQ(text, line);
  }
}

TEST(JsonScan, MakesPythonsNumbersReadable) {
  EXPECT_EQ(Rewritten(R"({"a": NaN, "b": [Infinity,-Infinity]})"),
            R"({"a": "\u0000NaN", "b": ["\u0000Infinity","\u0000-Infinity"]})");
}

TEST(JsonScan, ReplacesNumbersThatNoDoubleHolds) {
  const std::string digits(400, '9');
  EXPECT_EQ(Rewritten("{\"a\": " + digits + "}"), R"({"a": "\u0000Infinity"})");
  EXPECT_EQ(Rewritten("{\"a\": -" + digits + "}"), R"({"a": "\u0000-Infinity"})");
  EXPECT_EQ(Rewritten(R"({"a": 1e999})"), R"({"a": "\u0000Infinity"})");
  // Large, and still a double; so small that it is zero.
  EXPECT_EQ(Rewritten(R"({"a": 1000000000000000000000000000000})"),
            R"({"a": 1000000000000000000000000000000})");
  EXPECT_EQ(Rewritten(R"({"a": 1e-999})"), R"({"a": 1e-999})");
}

TEST(JsonScan, ReplacesHalvesOfSurrogatePairs) {
  EXPECT_EQ(Rewritten(R"({"a": "x\ud800y"})"), R"({"a": "x\u0000y"})");
  EXPECT_EQ(Rewritten(R"({"a": "\udc80"})"), R"({"a": "\u0000"})");
  EXPECT_EQ(Rewritten(R"({"a": "\ud800\ud83d\ude00"})"), R"({"a": "\u0000\ud83d\ude00"})");
  EXPECT_EQ(Rewritten(R"({"a": "\uD83D\uDE00"})"), R"({"a": "\uD83D\uDE00"})");
  EXPECT_EQ(Rewritten(R"({"\udfff": 1})"), R"({"\u0000": 1})");
  // An escaped backslash before a "u" is no escape.
  EXPECT_EQ(Rewritten(R"({"a": "\\ud800"})"), R"({"a": "\\ud800"})");
}

TEST(JsonScan, WhatItRewritesIsJson) {
  const std::string text =
      Rewritten(R"({"id": 3, "p": {"t": NaN, "cmd": "a\ud800", "l": [Infinity, 1e400]}})");
  EXPECT_FALSE(Json::parse(text, nullptr, false).is_discarded()) << text;
}

TEST(JsonScan, FindsTheIdInTheHostsOwnSpelling) {
  const auto id = [](std::string text) { return ScanJson(&text).id; };
  EXPECT_EQ(id(R"({"jsonrpc": "2.0", "id": 17, "method": "m"})"), "17");
  EXPECT_EQ(id(R"({"id":"a\"b","x":1})"), R"("a\"b")");
  EXPECT_EQ(id(R"({"id":null})"), "null");
  EXPECT_EQ(id(R"({"id":0})"), "0");
  EXPECT_EQ(id(R"({"id":1.5})"), "1.5");
  EXPECT_EQ(id(R"({"id": 123456789012345678901234567890})"), "123456789012345678901234567890");
  EXPECT_EQ(id(R"({"method":"m","params":{},"id":9})"), "9");
  EXPECT_EQ(id(R"({"id":1}{"id":2})"), "1");
  // Not the top level's, not a key, not an id.
  EXPECT_EQ(id(R"({"params":{"id":5},"method":"id"})"), "");
  EXPECT_EQ(id(R"(["id",5])"), "");
  EXPECT_EQ(id(R"({"a":"id","b":5})"), "");
  EXPECT_EQ(id(R"({"id":true})"), "");
  EXPECT_EQ(id(R"({"id":{"a":1}})"), "");
  EXPECT_EQ(id(R"({"id":[1]})"), "");
  EXPECT_EQ(id(R"({"id":)" + std::string(300, '1') + "}"), "");
}

// It is written into the answer as it is: one that is no JSON would make the host end the plugin.
TEST(JsonScan, TakesNoIdThatWouldBreakTheAnswer) {
  for (const char* good : {"0", "-0", "10", "-1.5", "1e5", "2.5E+07", R"("\u00e9\n\/")",
                           R"("\ud800")", R"("\\")", R"("")"}) {
    EXPECT_EQ(ScanId(std::string("{\"id\":") + good + "}"), good);
  }
  for (const char* bad :
       {"01", "-01", "1.", "-.5", ".5", "-", "1e", "1e+", "0x10", "-inf", "-nan", "-Infinity",
        "NaN", "+1", R"("\udt")", R"("\u12")", R"("\q")", R"("\x41")"}) {
    EXPECT_EQ(ScanId(std::string("{\"id\":") + bad + "}"), "") << bad;
  }
}

TEST(JsonScan, FindsTheIdInALineThatIsCutOff) {
  const std::string line =
      R"({"jsonrpc": "2.0", "id": 123, "method": "files.write", "params": {"content_b64": "AAAA)";
  const size_t known = line.find("123") + 4;
  for (size_t n = 0; n <= line.size(); ++n) {
    EXPECT_EQ(ScanId(line.substr(0, n)), n >= known ? "123" : "") << n;
  }
  EXPECT_EQ(ScanId(R"({"id": "ab)"), "");
}

TEST(JsonScan, CountsDepth) {
  std::string flat = R"({"a": [1, {"b": 2}], "c": "[[[["})";
  EXPECT_EQ(ScanJson(&flat).depth, 3);
  std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(ScanJson(&deep).depth, 1000);
}

TEST(JsonScan, SurvivesEveryPrefixOfAHardLine) {
  const std::string line =
      R"({"id":7,"a":"\ud800\udc00\ud800","b":[NaN,-Infinity,1e999],"c":"\\","d":{"e":"\u12"}})";
  for (size_t n = 0; n <= line.size(); ++n) {
    std::string text = line.substr(0, n);
    ScanJson(&text);
    ScanId(line.substr(0, n));
  }
}

}  // namespace
}  // namespace bridge::epp
