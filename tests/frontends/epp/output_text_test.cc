// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/output_text.h"

#include <string>

#include "bridge/base/utf8.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

std::string Whole(std::string_view a, std::string_view b, std::string_view c) {
  OutputText text;
  std::string result;
  for (const std::string_view part : {a, b, c}) {
    const std::string out = text.Feed(part);
    EXPECT_TRUE(IsValidUtf8(out));
    result += out;
  }
  return result + text.Finish();
}

void ExpectInAllParts(const std::string& bytes, const std::string& expected) {
  for (size_t i = 0; i <= bytes.size(); ++i) {
    for (size_t j = i; j <= bytes.size(); ++j) {
      const std::string_view view = bytes;
      EXPECT_EQ(Whole(view.substr(0, i), view.substr(i, j - i), view.substr(j)), expected)
          << i << " " << j;
    }
  }
}

TEST(OutputText, CarriesCharactersOverChunks) {
  const std::string text = "naive \xF0\x9F\x98\x80 \xE6\x97\xA5\xC3\xA9!";
  ExpectInAllParts(text, text);
}

TEST(OutputText, ReplacesWhatIsNoUtf8) {
  const std::string bad = "\xEF\xBF\xBD";
  ExpectInAllParts("\xFF\xFE ok \x80\n", bad + bad + " ok " + bad + "\n");
  // A surrogate, an overlong form, something above U+10FFFF.
  ExpectInAllParts("\xED\xA0\x80", bad + bad + bad);
  ExpectInAllParts("\xC0\xAF", bad + bad);
  ExpectInAllParts("\xF5\x80", bad + bad);
}

TEST(OutputText, GivesUpAnUnfinishedCharacterAtTheEnd) {
  const std::string bad = "\xEF\xBF\xBD";
  ExpectInAllParts("a\xF0\x9F\x98", "a" + bad + bad + bad);
}

TEST(OutputText, KeepsNul) {
  const std::string text("a\0b", 3);
  ExpectInAllParts(text, text);
}

TEST(OutputText, HoldsBackNoMoreThanItMust) {
  OutputText text;
  EXPECT_EQ(text.Feed("abc\xE6"), "abc");
  EXPECT_EQ(text.Feed("\x97"), "");
  EXPECT_EQ(text.Feed("\xA5"), "\xE6\x97\xA5");
  EXPECT_EQ(text.Finish(), "");
}

}  // namespace
}  // namespace bridge::epp
