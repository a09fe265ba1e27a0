// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/words.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What `set -- LINE; printf '<%s>' "$@"` of dash prints.
TEST(SplitWords, SplitsAsAShellDoes) {
  EXPECT_THAT(*SplitWords("tail -f /dev/null"), ElementsAre("tail", "-f", "/dev/null"));
  EXPECT_THAT(*SplitWords("  a \t b\n"), ElementsAre("a", "b"));
  EXPECT_THAT(*SplitWords(R"(sh -c 'echo "$HOME"; exit')"),
              ElementsAre("sh", "-c", R"(echo "$HOME"; exit)"));
  EXPECT_THAT(*SplitWords(R"("a b"'c d'e\ f)"), ElementsAre("a bc de f"));
  EXPECT_THAT(*SplitWords(R"("x\"y\\z\n\$")"), ElementsAre(R"(x"y\z\n$)"));
  EXPECT_THAT(*SplitWords(R"('' "" x)"), ElementsAre("", "", "x"));
  EXPECT_THAT(*SplitWords(R"('a\b')"), ElementsAre(R"(a\b)"));
  EXPECT_THAT(*SplitWords(""), IsEmpty());
  EXPECT_THAT(*SplitWords("  "), IsEmpty());
}

TEST(SplitWords, RefusesWhatDoesNotEnd) {
  EXPECT_FALSE(SplitWords("a 'b").ok());
  EXPECT_FALSE(SplitWords("a \"b").ok());
  EXPECT_FALSE(SplitWords("a\\").ok());
}

TEST(JoinWords, IsReadBackAsItWas) {
  const std::vector<std::string> words = {"sh",  "-c", "echo 'a b' \"$x\" \\", "", "it's",
                                          "a=b", "中"};
  EXPECT_EQ(*SplitWords(JoinWords(words)), words);
  EXPECT_EQ(JoinWords({"python3", "-m", "http.server"}), "python3 -m http.server");
}

}  // namespace
}  // namespace bridge::epp
