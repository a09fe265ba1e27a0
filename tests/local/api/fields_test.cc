// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::api {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

// Reads one field of `text` and returns the kinds of the problems.
template <class Read>
std::vector<std::string> Problems(const std::string& text, Read read) {
  const Json json = Json::parse(text);
  ValidationErrors errors;
  Fields fields(json, {"body"}, errors);
  read(fields);
  std::vector<std::string> kinds;
  if (errors.empty()) return kinds;
  const Failure failure = errors.ToFailure();
  for (const Json& error : failure.body["detail"]) {
    std::string kind = error["type"];
    for (const Json& step : error["loc"])
      kind += " " + (step.is_string() ? step.get<std::string>() : step.dump());
    kinds.push_back(kind);
  }
  return kinds;
}

TEST(LaxInt, TakesWhatPydanticTakes) {
  ValidationErrors errors;
  const auto read = [&errors](const char* text, IntRule rule = {}) {
    return LaxInt(Json::parse(text), rule, {"x"}, errors);
  };
  EXPECT_THAT(read("60"), Optional(60));
  EXPECT_THAT(read("60.0"), Optional(60));
  EXPECT_THAT(read(R"("60")"), Optional(60));
  EXPECT_THAT(read(R"(" +60 ")"), Optional(60));
  EXPECT_THAT(read("true"), Optional(1));
  EXPECT_THAT(read("18446744073709551615"), Optional(INT64_MAX));
  EXPECT_TRUE(errors.empty());
  for (const char* bad : {"1.5", R"("1.5")", R"("x")", R"("")", "null", "[]", "1e300"}) {
    EXPECT_EQ(read(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(read("59", {.at_least = 60}), std::nullopt);
  EXPECT_EQ(read("201", {.at_most = 200}), std::nullopt);
  const Json detail = errors.ToFailure().body["detail"];
  EXPECT_EQ(detail[0]["type"], "int_from_float");
  EXPECT_EQ(detail[1]["type"], "int_parsing");
  EXPECT_EQ(detail[4]["type"], "int_type");
  EXPECT_EQ(detail[7]["ctx"].dump(), R"({"ge":60})");
  EXPECT_EQ(detail[8]["msg"], "Input should be less than or equal to 200");
}

TEST(LaxBool, TakesWords) {
  ValidationErrors errors;
  for (const char* yes : {"true", "1", R"("Yes")", R"("on")", R"("T")"}) {
    EXPECT_THAT(LaxBool(Json::parse(yes), {}, errors), Optional(true)) << yes;
  }
  for (const char* no : {"false", "0", R"("no")", R"("OFF")", R"("f")"}) {
    EXPECT_THAT(LaxBool(Json::parse(no), {}, errors), Optional(false)) << no;
  }
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(LaxBool("maybe", {}, errors), std::nullopt);
  EXPECT_EQ(LaxBool(2, {}, errors), std::nullopt);
  EXPECT_EQ(LaxBool(nullptr, {}, errors), std::nullopt);
  const Json detail = errors.ToFailure().body["detail"];
  EXPECT_EQ(detail[0]["type"], "bool_parsing");
  EXPECT_EQ(detail[2]["type"], "bool_type");
}

TEST(Fields, MissingAndNull) {
  const auto required = [](Fields& f) { f.String("a", {.presence = Presence::kRequired}); };
  EXPECT_THAT(Problems("{}", required), ElementsAre("missing body a"));
  EXPECT_THAT(Problems(R"({"a":null})", required), ElementsAre("string_type body a"));
  const auto optional = [](Fields& f) { EXPECT_EQ(f.String("a"), std::nullopt); };
  EXPECT_THAT(Problems("{}", optional), ElementsAre());
  EXPECT_THAT(Problems(R"({"a":null})", optional), ElementsAre());
}

TEST(Fields, StringRules) {
  const auto rule = [](Fields& f) {
    f.String("a", {.min_length = 2,
                   .max_length = 3,
                   .matches = [](std::string_view s) { return s.front() == 'x'; },
                   .pattern = "^x"});
  };
  EXPECT_THAT(Problems(R"({"a":"xy"})", rule), ElementsAre());
  EXPECT_THAT(Problems(R"({"a":"xüü"})", rule), ElementsAre()) << "three characters";
  EXPECT_THAT(Problems(R"({"a":"x"})", rule), ElementsAre("string_too_short body a"));
  EXPECT_THAT(Problems(R"({"a":"xxxx"})", rule), ElementsAre("string_too_long body a"));
  EXPECT_THAT(Problems(R"({"a":"yy"})", rule), ElementsAre("string_pattern_mismatch body a"));
  EXPECT_THAT(Problems(R"({"a":1})", rule), ElementsAre("string_type body a"));
}

TEST(Fields, MapsAndLists) {
  const auto map = [](Fields& f) { f.StringMap("a"); };
  EXPECT_THAT(Problems(R"({"a":[]})", map), ElementsAre("dict_type body a"));
  EXPECT_THAT(Problems(R"({"a":{"x":1,"y":"2","z":null}})", map),
              ElementsAre("string_type body a x", "string_type body a z"));
  const auto dropping = [](Fields& f) {
    EXPECT_THAT(f.StringMap("a", true), Optional(ElementsAre(Pair("y", "2"))));
  };
  EXPECT_THAT(Problems(R"({"a":{"y":"2","z":null}})", dropping), ElementsAre());
  const auto list = [](Fields& f) { f.StringList("a", 1); };
  EXPECT_THAT(Problems(R"({"a":"x"})", list), ElementsAre("list_type body a"));
  EXPECT_THAT(Problems(R"({"a":[]})", list), ElementsAre("too_short body a"));
  EXPECT_THAT(Problems(R"({"a":["x",1]})", list), ElementsAre("string_type body a 1"));
}

TEST(Fields, ObjectsWithinObjects) {
  const auto read = [](Fields& f) {
    if (auto inner = f.Object("a", Presence::kRequired)) {
      inner->Int("n", {.presence = Presence::kRequired});
    }
    for (Fields& item : f.Objects("list")) item.Bool("b", Presence::kRequired);
    f.AnyObject("any", Presence::kRequired);
  };
  EXPECT_THAT(Problems(R"({"a":{},"list":[{"b":1},{},3],"any":[]})", read),
              ElementsAre("missing body a n", "model_attributes_type body list 2",
                          "missing body list 1 b", "dict_type body any"));
  EXPECT_THAT(Problems(R"({"a":7,"list":{},"any":{}})", read),
              ElementsAre("model_attributes_type body a", "list_type body list"));
}

TEST(Fields, OfNoObjectReadSilently) {
  EXPECT_THAT(Problems("[]", [](Fields& f) { f.String("a", {.presence = Presence::kRequired}); }),
              ElementsAre("model_attributes_type body"));
}

}  // namespace
}  // namespace bridge::local::api
