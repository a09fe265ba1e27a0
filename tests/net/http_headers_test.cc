// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/http_headers.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge {
namespace {

TEST(HttpHeaders, GetIgnoresCaseAndTakesTheFirst) {
  const HttpHeaders headers({{"Content-Type", "a"}, {"content-type", "b"}, {"X", ""}});
  EXPECT_EQ(headers.Get("CONTENT-TYPE"), "a");
  EXPECT_EQ(headers.Get("x"), "");
  EXPECT_EQ(headers.Get("Content-Typ"), std::nullopt);
  EXPECT_TRUE(headers.Has("X"));
  EXPECT_FALSE(headers.Has(""));
}

TEST(HttpHeaders, AddKeepsTheOrderAndDuplicates) {
  HttpHeaders headers;
  EXPECT_TRUE(headers.empty());
  headers.Add("Set-Cookie", "1");
  headers.Add("A", "2");
  headers.Add("set-cookie", "3");
  std::string order;
  for (const auto& field : headers) order += field.name + field.value + ";";
  EXPECT_EQ(order, "Set-Cookie1;A2;set-cookie3;");
  EXPECT_EQ(headers.size(), 3u);
}

TEST(HttpHeaders, SetReplacesAllOfThatName) {
  HttpHeaders headers({{"A", "1"}, {"B", "2"}, {"a", "3"}});
  headers.Set("A", "4");
  EXPECT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers.Get("a"), "4");
  headers.Remove("b");
  EXPECT_FALSE(headers.Has("B"));
}

TEST(HttpHeaders, NamesThatMayTravel) {
  EXPECT_TRUE(IsHeaderName("OPEN-SANDBOX-API-KEY"));
  EXPECT_TRUE(IsHeaderName("x_1!#$%&'*+.^`|~"));
  for (const std::string name : {"", "a b", "a:", "a\r", "a\n", "\xc3\xa4", "a(", "a\x7f", "a/b"}) {
    EXPECT_FALSE(IsHeaderName(name)) << name;
  }
  EXPECT_FALSE(IsHeaderName(std::string("a\0", 2)));
}

TEST(HttpHeaders, ValuesThatMayTravel) {
  EXPECT_TRUE(IsHeaderValue(""));
  EXPECT_TRUE(IsHeaderValue("a b\tc, \"d\" \xc3\xa4"));
  for (const std::string value : {"a\rb", "a\nb", "\x01", "\x7f", "\x1f"}) {
    EXPECT_FALSE(IsHeaderValue(value)) << value;
  }
  EXPECT_FALSE(IsHeaderValue(std::string("a\0b", 3)));
}

TEST(HttpHeaders, ParsesLines) {
  const auto field = ParseHeaderLine("Content-Type: \ttext/plain; a=b \t");
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(field->name, "Content-Type");
  EXPECT_EQ(field->value, "text/plain; a=b");
  EXPECT_EQ(ParseHeaderLine("A:").value().value, "");
  EXPECT_EQ(ParseHeaderLine("A: b: c").value().value, "b: c");
  for (const std::string line : {"", "no colon", ": x", " A: folded", "A : x"}) {
    EXPECT_FALSE(ParseHeaderLine(line).has_value()) << line;
  }
}

TEST(HttpHeaders, SameNameWhateverTheCase) {
  EXPECT_TRUE(SameHeaderName("eTag", "ETAG"));
  EXPECT_FALSE(SameHeaderName("ETag", "ETags"));
  EXPECT_FALSE(SameHeaderName("a@", "a`"));  // differ by the bit that makes letters small
}

}  // namespace
}  // namespace bridge
