// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::http {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

TEST(Headers, KeepOrderAndCaseAndLookUpWithout) {
  Headers headers = {{"Content-Type", "a"}, {"X-B", "1"}};
  headers.Add("x-b", "2");
  EXPECT_THAT(headers.Get("CONTENT-TYPE"), Optional(std::string_view("a")));
  EXPECT_THAT(headers.Get("X-b"), Optional(std::string_view("1")));
  EXPECT_EQ(headers.Get("none"), std::nullopt);
  EXPECT_THAT(headers.items(),
              ElementsAre(Pair("Content-Type", "a"), Pair("X-B", "1"), Pair("x-b", "2")));
}

TEST(Headers, SetReplacesInPlaceAndDropsTheOthers) {
  Headers headers = {{"A", "1"}, {"B", "2"}, {"a", "3"}};
  headers.Set("a", "4");
  headers.Set("C", "5");
  EXPECT_THAT(headers.items(), ElementsAre(Pair("A", "4"), Pair("B", "2"), Pair("C", "5")));
  headers.Remove("b");
  headers.Remove("none");
  EXPECT_THAT(headers.items(), ElementsAre(Pair("A", "4"), Pair("C", "5")));
}

TEST(Headers, TokensOfLists) {
  const Headers headers = {{"Connection", "keep-alive , Upgrade"}, {"connection", "X"}};
  EXPECT_TRUE(headers.HasToken("Connection", "upgrade"));
  EXPECT_TRUE(headers.HasToken("Connection", "keep-alive"));
  EXPECT_TRUE(headers.HasToken("Connection", "x"));
  EXPECT_FALSE(headers.HasToken("Connection", "keep"));
  EXPECT_FALSE(headers.HasToken("Upgrade", "upgrade"));
}

Request Split(const std::string& target) {
  Request request;
  request.target = target;
  request.SplitTarget();
  return request;
}

TEST(Request, SplitsItsTarget) {
  const Request request = Split("/a%20b/%2F?x=1&x=%32&y&=z&w=a+b");
  EXPECT_EQ(request.raw_path, "/a%20b/%2F");
  EXPECT_EQ(request.path, "/a b//");
  EXPECT_EQ(request.raw_query, "x=1&x=%32&y&=z&w=a+b");
  EXPECT_EQ(request.QueryFirst("x"), "1");
  EXPECT_EQ(request.QueryLast("x"), "2");
  EXPECT_THAT(request.QueryAll("x"), ElementsAre("1", "2"));
  EXPECT_EQ(request.QueryFirst("y"), "");
  EXPECT_EQ(request.QueryFirst(""), "z");
  EXPECT_EQ(request.QueryFirst("w"), "a b");
  EXPECT_EQ(request.QueryFirst("none"), std::nullopt);
  EXPECT_FALSE(request.bad_path_escape);
}

TEST(Request, AbsoluteFormAndOddTargets) {
  EXPECT_EQ(Split("http://h:1/p?q").path, "/p");
  EXPECT_EQ(Split("http://h").path, "/");
  EXPECT_EQ(Split("*").path, "*");
  EXPECT_EQ(Split("/p?").raw_query, "");
  EXPECT_EQ(Split("/a?b?c").raw_query, "b?c");
  EXPECT_TRUE(Split("/%zz").bad_path_escape);
  EXPECT_EQ(Split("/%zz").path, "/%zz");
}

TEST(Query, MarksBadEscapesAndSkipsEmptyPairs) {
  const auto params = ParseQuery("&a=%zz&&b=%4&c=%41&");
  ASSERT_EQ(params.size(), 3u);
  EXPECT_TRUE(params[0].bad_escape);
  EXPECT_EQ(params[0].value, "%zz");
  EXPECT_TRUE(params[1].bad_escape);
  EXPECT_FALSE(params[2].bad_escape);
  EXPECT_EQ(params[2].value, "A");
}

TEST(Percent, DecodesAndEncodes) {
  EXPECT_EQ(PercentDecode("%41%6a%6A+"), "Ajj+");
  EXPECT_EQ(PercentDecode("a+b", true), "a b");
  EXPECT_EQ(PercentDecode("%"), "%");
  EXPECT_EQ(PercentDecode("%1"), "%1");
  EXPECT_EQ(PercentDecode(std::string("%00", 3)), std::string("\0", 1));
  EXPECT_EQ(PercentEncode("a b/\xff~"), "a%20b%2F%FF~");
  EXPECT_EQ(PercentEncode("a/b?c", "/"), "a/b%3Fc");
}

TEST(Text, ComparesWithoutCaseByWholeLength) {
  EXPECT_TRUE(EqualsIgnoreCase("AbC", "aBc"));
  EXPECT_FALSE(EqualsIgnoreCase("ab", "abc"));
  EXPECT_EQ(AsciiLower("ÄBC"), "Äbc");  // ASCII only
}

TEST(HttpDate, IsInTheFormOfRfc9110) {
  EXPECT_EQ(HttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(HttpDate(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(HttpDate(1795970796), "Sun, 29 Nov 2026 16:46:36 GMT");
}

TEST(Reason, KnowsWhatIsUsed) {
  EXPECT_EQ(ReasonPhrase(202), "Accepted");
  EXPECT_EQ(ReasonPhrase(504), "Gateway Timeout");
  EXPECT_EQ(ReasonPhrase(299), "Status");
}

}  // namespace
}  // namespace bridge::local::http
