// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/values.h"

#include <cmath>
#include <string>

#include "frontends/epp/errors.h"
#include "frontends/epp/message.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

// A value as it arrives in a line of the host.
Json Received(const std::string& json) {
  return ParseMessage(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"v":)" + json + "}}")
      .params["v"];
}

int CodeOf(const absl::Status& status) { return ToEppError(status).code; }

TEST(AsText, RefusesNulAndHalfSurrogates) {
  EXPECT_EQ(*AsText(Received(R"("a\nb")"), "f"), "a\nb");
  for (const char* bad :
       {R"("a\u0000b")", R"("\ud800")", R"("\udc80x")", "5", "null", "[]", "NaN"}) {
    const auto text = AsText(Received(bad), "the_field");
    ASSERT_FALSE(text.ok()) << bad;
    EXPECT_EQ(CodeOf(text.status()), kConfigError);
    EXPECT_EQ(text.status().message().substr(0, 10), "the_field:") << text.status();
  }
}

TEST(AsBool, TakesTheEightWords) {
  for (const char* yes :
       {"true", "1", R"("true")", R"("1")", R"("YES")", R"("On")", R"(" yes ")"}) {
    EXPECT_TRUE(*AsBool(Received(yes), "f")) << yes;
  }
  for (const char* no : {"false", "0", R"("false")", R"("0")", R"("No")", R"("off")"}) {
    EXPECT_FALSE(*AsBool(Received(no), "f")) << no;
  }
  for (const char* bad : {R"("maybe")", "2", "0.0", "null", "[]", R"("")"}) {
    EXPECT_FALSE(AsBool(Received(bad), "f").ok()) << bad;
  }
}

TEST(AsNumber, TakesTextAndPythonsSpecials) {
  EXPECT_EQ(*AsNumber(Received("1.5"), "f"), 1.5);
  EXPECT_EQ(*AsNumber(Received(R"(" 90 ")"), "f"), 90);
  EXPECT_EQ(*AsNumber(Received(R"("1e3")"), "f"), 1000);
  EXPECT_TRUE(std::isnan(*AsNumber(Received("NaN"), "f")));
  EXPECT_TRUE(std::isinf(*AsNumber(Received("Infinity"), "f")));
  EXPECT_LT(*AsNumber(Received("-Infinity"), "f"), 0);
  EXPECT_TRUE(std::isinf(*AsNumber(Received(std::string(400, '9')), "f")));
  EXPECT_TRUE(std::isinf(*AsNumber(Received(R"("inf")"), "f")));
  for (const char* bad : {R"("abc")", R"("")", R"("1x")", "true", "null", "{}"}) {
    EXPECT_FALSE(AsNumber(Received(bad), "f").ok()) << bad;
  }
}

TEST(AsInteger, TakesWholeNumbersInRange) {
  EXPECT_EQ(*AsInteger(Received("80"), "f", 1, 65535), 80);
  for (const char* bad : {"0", "65536", "-1", "true", R"("80")", "80.0", "80.5", "null",
                          "18446744073709551615", "1000000000000000000000"}) {
    EXPECT_FALSE(AsInteger(Received(bad), "f", 1, 65535).ok()) << bad;
  }
}

TEST(Params, TakesNullForAbsent) {
  const Json object = {{"a", nullptr}, {"b", "x"}};
  const Params params(object);
  EXPECT_FALSE(params.Has("a"));
  EXPECT_FALSE(params.Has("c"));
  EXPECT_EQ(*params.Text("a", "none"), "none");
  EXPECT_EQ(*params.Text("b", "none"), "x");
  EXPECT_FALSE(params.Number("a")->has_value());
}

TEST(Params, TellsWrongTypesFromWrongValues) {
  const Json object = {{"n", 5}, {"e", ""}, {"l", {1}}, {"z", std::string("\0", 1)}};
  const Params params(object);
  EXPECT_EQ(CodeOf(params.Text("n").status()), kInvalidParams);
  EXPECT_EQ(CodeOf(params.Text("missing").status()), kInvalidParams);
  EXPECT_EQ(CodeOf(params.NonEmptyText("e").status()), kConfigError);
  EXPECT_EQ(CodeOf(params.Text("z").status()), kConfigError);
  EXPECT_EQ(CodeOf(params.TextList("n").status()), kInvalidParams);
  EXPECT_EQ(CodeOf(params.TextList("l").status()), kConfigError);
  EXPECT_EQ(CodeOf(params.TextMap("l").status()), kInvalidParams);
}

TEST(AsTextMap, NamesTheKey) {
  const auto map = AsTextMap(Json{{"good", "1"}, {"worse", 2}}, "metadata");
  EXPECT_NE(map.status().message().find("metadata.worse"), std::string::npos) << map.status();
}

}  // namespace
}  // namespace bridge::epp
