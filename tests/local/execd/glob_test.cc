// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge::local::execd {
namespace {

void ExpectMatch(std::string_view pattern, std::string_view name, GlobMatch expected) {
  EXPECT_EQ(MatchGlob(pattern, name), expected) << pattern << " against " << name;
}

TEST(Glob, Matches) {
  for (const auto& [pattern, name] :
       std::initializer_list<std::pair<const char*, const char*>>{{"abc", "abc"},
                                                                  {"*", "abc"},
                                                                  {"**", "abc"},
                                                                  {"*c", "abc"},
                                                                  {"a*", "a"},
                                                                  {"a*b*c*d*e*", "axbxcxdxe"},
                                                                  {"*.txt", ".txt"},
                                                                  {"a[b-d]e", "ace"},
                                                                  {"[^a-c]", "d"},
                                                                  {"a???b", "axyzb"},
                                                                  {"a[^a]b",
                                                                   "a\xe2\x98\xba"
                                                                   "b"},
                                                                  {"[a-\xce\xb6]*", "\xce\xb1"},
                                                                  {"\\*", "*"},
                                                                  {"[\\]a]", "]"},
                                                                  {"[\\-x]", "x"},
                                                                  {"*x", "xxx"},
                                                                  {"?", "\xff"},
                                                                  {"", ""}}) {
    ExpectMatch(pattern, name, GlobMatch::kYes);
  }
}

TEST(Glob, DoesNotMatch) {
  for (const auto& [pattern, name] :
       std::initializer_list<std::pair<const char*, const char*>>{{"abc", "abcd"},
                                                                  {"a*", "ba"},
                                                                  {"*", "a/b"},
                                                                  {"?", "/"},
                                                                  {"a?b", "a/b"},
                                                                  {"a[^a]b", "aab"},
                                                                  {"[a-c]", "d"},
                                                                  {"a*b?c*x", "abxbbxdbxebxczzy"},
                                                                  {"\\*", "x"},
                                                                  {"*.txt", "a.txt2"},
                                                                  {"a/*.txt", "deep.txt"},
                                                                  {"", "a"}}) {
    ExpectMatch(pattern, name, GlobMatch::kNo);
  }
}

TEST(Glob, BadPatterns) {
  for (const char* pattern :
       {"[", "[]", "[]a]", "[a", "[-]", "[x-]", "[-x]", "[a-b-c]", "a\\", "[^", "[^bc", "a["}) {
    ExpectMatch(pattern, "a", GlobMatch::kBadPattern);
    EXPECT_FALSE(IsGlob(pattern)) << pattern;
  }
  EXPECT_TRUE(IsGlob("**"));
}

TEST(Glob, ManyStarsStayCheap) {
  std::string pattern, name(2000, 'a');
  for (int i = 0; i < 100; ++i) pattern += "*a";
  pattern += "b";
  ExpectMatch(pattern, name, GlobMatch::kNo);
}

}  // namespace
}  // namespace bridge::local::execd
