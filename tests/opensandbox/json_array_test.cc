// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/json_array.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bridge/base/error.h"

namespace bridge {
namespace {

struct Result {
  std::vector<std::string> elements;
  bool whole = false;
};

Result Split(const std::vector<std::string_view>& pieces, size_t max = 1 << 20) {
  JsonArraySplitter splitter(max);
  Result result;
  for (const std::string_view piece : pieces) {
    splitter.Feed(piece);
    std::string_view element;
    while (splitter.Next(&element)) result.elements.emplace_back(element);
  }
  result.whole = splitter.Finish().ok();
  return result;
}

TEST(JsonArraySplitter, SameElementsUnderAllSplits) {
  const std::string text = " [ {\"a\":\"}]{[\\\"\\\\\"},\n{\"b\":[1,{\"c\":2}]} , {} ]\n";
  const std::vector<std::string> expected = {"{\"a\":\"}]{[\\\"\\\\\"}", "{\"b\":[1,{\"c\":2}]}",
                                             "{}"};
  const std::string_view all = text;
  for (size_t i = 0; i <= all.size(); ++i) {
    for (size_t j = i; j <= all.size(); ++j) {
      const Result result = Split({all.substr(0, i), all.substr(i, j - i), all.substr(j)});
      EXPECT_EQ(result.elements, expected) << i << " " << j;
      EXPECT_TRUE(result.whole);
    }
  }
}

TEST(JsonArraySplitter, EmptyArray) {
  EXPECT_TRUE(Split({"[]"}).whole);
  EXPECT_TRUE(Split({"[", " ", "]", " "}).whole);
}

TEST(JsonArraySplitter, WhatIsNoWholeArrayIsAnError) {
  for (const char* text : {"", "[", "[{}", "[{},", "[{\"a\":1", "{}", "null", "[1]", "[{}{}]",
                           "[,{}]", "[{},]", "[{}]x", "[\"a\"]", "<html>"}) {
    EXPECT_FALSE(Split({text}).whole) << text;
  }
}

TEST(JsonArraySplitter, ElementsBeforeAnErrorAreGivenOut) {
  EXPECT_EQ(Split({"[{\"a\":1},{\"b\""}).elements, std::vector<std::string>{"{\"a\":1}"});
}

TEST(JsonArraySplitter, AnElementIsBounded) {
  EXPECT_TRUE(Split({"[{\"a\":\"" + std::string(90, 'x') + "\"}]"}, 100).whole);
  EXPECT_FALSE(Split({"[{\"a\":\"" + std::string(100, 'x') + "\"}]"}, 100).whole);
}

}  // namespace
}  // namespace bridge
