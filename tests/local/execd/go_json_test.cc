// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/go_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace bridge::local::execd {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::string ErrorOf(std::string_view text) { return ParseGoJson(text).error; }

TEST(GoJson, ReadsEveryKind) {
  const JsonParse parsed =
      ParseGoJson(R"( {"s":"x","n":-1.5e3,"t":true,"f":false,"z":null,"a":[1,[],{}]} )");
  ASSERT_EQ(parsed.error, "");
  ASSERT_EQ(parsed.value.members.size(), 6u);
  EXPECT_EQ(parsed.value.members[0].value.text, "x");
  EXPECT_EQ(parsed.value.members[1].value.text, "-1.5e3");
  EXPECT_TRUE(parsed.value.members[2].value.boolean);
  EXPECT_FALSE(parsed.value.members[3].value.boolean);
  EXPECT_EQ(parsed.value.members[4].value.kind, JsonValue::Kind::kNull);
  EXPECT_EQ(parsed.value.members[5].value.items.size(), 3u);
}

// Recordings body-malformed, body-empty, mkdir-malformed, upload-bad-metadata-json, and Go's
// scanner.
TEST(GoJson, SyntaxErrorsInGosWords) {
  EXPECT_EQ(ErrorOf("{x"), "invalid character 'x' looking for beginning of object key string");
  EXPECT_EQ(ErrorOf("{nope"), "invalid character 'n' looking for beginning of object key string");
  EXPECT_EQ(ErrorOf(""), "EOF");
  EXPECT_EQ(ErrorOf("  \n"), "EOF");
  EXPECT_EQ(ErrorOf("{"), "unexpected EOF");
  EXPECT_EQ(ErrorOf("{\"a"), "unexpected EOF");
  EXPECT_EQ(ErrorOf("{\"a\""), "unexpected EOF");
  EXPECT_EQ(ErrorOf("[1"), "unexpected EOF");
  EXPECT_EQ(ErrorOf("tru"), "unexpected EOF");
  EXPECT_EQ(ErrorOf("trux"), "invalid character 'x' in literal true (expecting 'e')");
  EXPECT_EQ(ErrorOf("@"), "invalid character '@' looking for beginning of value");
  EXPECT_EQ(ErrorOf("'"), "invalid character '\\'' looking for beginning of value");
  EXPECT_EQ(ErrorOf("{\"a\" 1}"), "invalid character '1' after object key");
  EXPECT_EQ(ErrorOf("{\"a\":1 2}"), "invalid character '2' after object key:value pair");
  EXPECT_EQ(ErrorOf("[1 2]"), "invalid character '2' after array element");
  EXPECT_EQ(ErrorOf("[1.]"), "invalid character ']' after decimal point in numeric literal");
  EXPECT_EQ(ErrorOf("[1ex]"), "invalid character 'x' in exponent of numeric literal");
  EXPECT_EQ(ErrorOf("[-]"), "invalid character ']' in numeric literal");
  EXPECT_EQ(ErrorOf("\"\\q\""), "invalid character 'q' in string escape code");
  EXPECT_EQ(ErrorOf("\"\\u12g4\""), "invalid character 'g' in \\u hexadecimal character escape");
  EXPECT_EQ(ErrorOf("\"a\nb\""), "invalid character '\\n' in string literal");
}

TEST(GoJson, WhatFollowsTheFirstValueIsIgnored) {
  const JsonParse parsed = ParseGoJson("{\"command\":\"echo first\"} trailing");
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.consumed, 24u);
}

TEST(GoJson, DecodesEscapes) {
  EXPECT_EQ(ParseGoJson(R"("\"\\\/\b\f\n\r\t")").value.text, "\"\\/\b\f\n\r\t");
  EXPECT_EQ(ParseGoJson(R"("\u00fc\u65e5\ud83d\ude00")").value.text,
            "\xc3\xbc\xe6\x97\xa5\xf0\x9f\x98\x80");
  EXPECT_EQ(ParseGoJson(R"("\ud83dx")").value.text, "\xef\xbf\xbdx");
  EXPECT_EQ(ParseGoJson(R"("\ud83d\u0041")").value.text,
            "\xef\xbf\xbd"
            "A");
  EXPECT_EQ(ParseGoJson("\"a\xff\xfe"
                        "b\"")
                .value.text,
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b");
  EXPECT_EQ(ParseGoJson(std::string("\"\\u0000\"")).value.text, std::string(1, '\0'));
}

TEST(GoJson, DepthIsBounded) {
  const std::string deep(100000, '[');
  EXPECT_EQ(ErrorOf(deep), "exceeded max depth");
  EXPECT_EQ(ErrorOf(std::string(100, '[') + std::string(100, ']')), "");
}

// Recordings command-number, timeout-string, timeout-fraction, uid-negative, uid-string,
// env-wrong-type, body-array.
TEST(GoJson, MismatchesInGosWords) {
  const auto error = [](std::string_view text) {
    const JsonParse parsed = ParseGoJson(text);
    JsonFields fields(parsed.value, "RunCommandRequest", "model.RunCommandRequest");
    std::string command;
    int64_t timeout = 0;
    std::optional<uint32_t> uid;
    std::map<std::string, std::string> envs;
    fields.String("command", &command);
    fields.Int64("timeout", &timeout);
    fields.Uint32("uid", &uid);
    fields.StringMap("envs", &envs);
    return fields.error();
  };
  const std::string prefix = "json: cannot unmarshal ";
  const std::string into = " into Go struct field RunCommandRequest.";
  EXPECT_EQ(error("{\"command\":5}"), prefix + "number" + into + "command of type string");
  EXPECT_EQ(error("{\"timeout\":\"500\"}"), prefix + "string" + into + "timeout of type int64");
  EXPECT_EQ(error("{\"timeout\":1.5}"), prefix + "number 1.5" + into + "timeout of type int64");
  EXPECT_EQ(error("{\"uid\":-1}"), prefix + "number -1" + into + "uid of type uint32");
  EXPECT_EQ(error("{\"uid\":4294967296}"),
            prefix + "number 4294967296" + into + "uid of type uint32");
  EXPECT_EQ(error("{\"uid\":\"root\"}"), prefix + "string" + into + "uid of type uint32");
  EXPECT_EQ(error("{\"envs\":{\"A\":1}}"), prefix + "number" + into + "envs of type string");
  EXPECT_EQ(error("[]"), prefix + "array into Go value of type model.RunCommandRequest");
  EXPECT_EQ(error("null"), "");
  EXPECT_EQ(error("{\"command\":null,\"envs\":null}"), "");
}

TEST(GoJson, NamesMatchInAnyCaseAndTheLastWins) {
  const JsonParse parsed = ParseGoJson(
      R"({"command":"echo lower","COMMAND":"echo UPPER","Envs":{"A":"1","b":null},"L":["x","y"]})");
  JsonFields fields(parsed.value, "T", "T");
  std::string command;
  std::map<std::string, std::string> envs;
  std::vector<std::string> list;
  fields.String("command", &command);
  fields.StringMap("envs", &envs);
  fields.StringList("l", &list);
  EXPECT_TRUE(fields.ok());
  EXPECT_EQ(command, "echo UPPER");
  EXPECT_THAT(envs, ElementsAre(Pair("A", "1"), Pair("b", "")));
  EXPECT_THAT(list, ElementsAre("x", "y"));
}

TEST(GoJson, Integers) {
  EXPECT_EQ(JsonInteger("-5"), -5);
  EXPECT_EQ(JsonInteger("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(JsonInteger("9223372036854775808"), std::nullopt);
  EXPECT_EQ(JsonInteger("1e3"), std::nullopt);
  EXPECT_EQ(JsonInteger(""), std::nullopt);
  EXPECT_EQ(JsonInteger("3.5"), std::nullopt);
}

}  // namespace
}  // namespace bridge::local::execd
