// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/glob.h"

#include <gtest/gtest.h>

#include "bridge/base/error.h"

namespace bridge {
namespace {

// The tree of case FIL-27.
constexpr const char* kTree[] = {"a.py", "src/b.py", "src/x/c.py", ".h/d.py", "src/e.PY"};

std::string Found(std::string_view pattern) {
  const auto glob = Glob::Parse("pattern", pattern);
  if (!glob.ok()) return "error";
  std::string found;
  for (const char* path : kTree) {
    if (glob->Matches(path)) found += std::string(path) + " ";
  }
  return found;
}

TEST(Glob, DocumentedMeanings) {
  EXPECT_EQ(Found("*.py"), "a.py src/b.py src/x/c.py .h/d.py ");
  EXPECT_EQ(Found("src/*.py"), "src/b.py ");
  EXPECT_EQ(Found("**/*.py"), "a.py src/b.py src/x/c.py .h/d.py ");
  EXPECT_EQ(Found("src/**/*.py"), "src/b.py src/x/c.py ");
  EXPECT_EQ(Found("**"), "a.py src/b.py src/x/c.py .h/d.py src/e.PY ");
  EXPECT_EQ(Found("?.py"), "a.py src/b.py src/x/c.py .h/d.py ");
  EXPECT_EQ(Found("[ab].py"), "a.py src/b.py ");
  EXPECT_EQ(Found("[!ab].py"), "src/x/c.py .h/d.py ");
  EXPECT_EQ(Found("*.PY"), "src/e.PY ");
  EXPECT_EQ(Found("\\*.py"), "");
}

TEST(Glob, BadPatternsAreErrorsAndNotEmptyResults) {
  for (const char* pattern : {"", "[", "a[b", "..", "../*", "/a", "a//b", "a/", "./a"}) {
    EXPECT_EQ(ReasonOf(Glob::Parse("pattern", pattern).status()),
              ErrorReason::ERROR_REASON_INVALID_ARGUMENT)
        << pattern;
  }
}

// As deep as a path can be, and hours if every way to match were tried.
TEST(Glob, ManyLevelsDoNotExplode) {
  std::string path = "a";
  for (int i = 0; i < 2000; ++i) path += "/a";
  EXPECT_FALSE(Glob::Parse("p", "**/a/**/a/**/a/**/b")->Matches(path));
  EXPECT_FALSE(Glob::Parse("p", "**/**/**/**/**/a/**/b")->Matches(path));
  EXPECT_TRUE(Glob::Parse("p", "**/a/**/a/**/a/**/a")->Matches(path));
}

TEST(Glob, LevelsAreGivenToTheLastThatNeedsThem) {
  EXPECT_TRUE(Glob::Parse("p", "**/a/**/b")->Matches("a/x/a/c/a/b"));
  EXPECT_TRUE(Glob::Parse("p", "a/**/b/**")->Matches("a/b"));
  EXPECT_TRUE(Glob::Parse("p", "a/**/b/*/c")->Matches("a/b/x/b/y/c"));
  EXPECT_FALSE(Glob::Parse("p", "a/**/b/*/c")->Matches("a/b/x/b/c"));
  EXPECT_FALSE(Glob::Parse("p", "**/a/**/b")->Matches("b/a"));
}

}  // namespace
}  // namespace bridge
