// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/copy.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge::cli {
namespace {

TEST(ParsePlace, TellsTheTwoSidesApart) {
  const auto in_sandbox = ParsePlace("sb-1:/srv/a:b");
  ASSERT_TRUE(in_sandbox.ok());
  EXPECT_EQ(in_sandbox->sandbox_id, "sb-1");
  EXPECT_EQ(in_sandbox->path, "/srv/a:b");
  for (const char* local : {"a", "-", "/a:b", "./a:/b", "../x", ":/a", "a/b:/c"}) {
    const auto place = ParsePlace(local);
    ASSERT_TRUE(place.ok()) << local;
    EXPECT_FALSE(place->remote()) << local;
    EXPECT_EQ(place->path, local);
  }
  EXPECT_TRUE(ParsePlace("-")->stream());
  for (const char* relative : {"sb-1:", "sb-1:a", "sb-1:~/a", "sb-1:$HOME/a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParsePlace(relative).status())) << relative;
  }
}

TEST(LastPart, NamesWhatIsCopied) {
  EXPECT_EQ(LastPart("/a/b"), "b");
  EXPECT_EQ(LastPart("a"), "a");
  EXPECT_EQ(LastPart("/a/b//"), "b");
  EXPECT_EQ(LastPart("/"), "");
  EXPECT_EQ(LastPart("."), "");
  EXPECT_EQ(LastPart("a/.."), "");
  EXPECT_EQ(LastPart("..."), "...");
}

TEST(IsSafeRelative, LetsNothingOut) {
  for (const char* good : {"a", "a/b", "a/.b/..c", "-rf", "a b\n"}) {
    EXPECT_TRUE(IsSafeRelative(good)) << good;
  }
  for (const std::string bad :
       {"", "/", "/a", "a//b", "a/", "..", "../a", "a/../../b", ".", "a/.", "a/.."}) {
    EXPECT_FALSE(IsSafeRelative(bad)) << bad;
  }
  EXPECT_FALSE(IsSafeRelative(std::string("a\0b", 3)));
}

TEST(ProgressLine, FitsALine) {
  EXPECT_EQ(ProgressLine("f", 512, 1024, 2048),
            "f  [##########..........]  50%  512 B of 1.0 KiB  2.0 KiB/s");
  EXPECT_EQ(ProgressLine("f", 3 << 20, 0, 0), "f  3.0 MiB  0 B/s");
  EXPECT_EQ(ProgressLine("f", 2048, 1024, 1),  // it grew
            "f  [####################] 100%  2.0 KiB of 1.0 KiB  1 B/s");
  const std::string line = ProgressLine(std::string(200, 'n'), 1, 2, 3);
  EXPECT_EQ(line.size(), 79u);
  EXPECT_EQ(line.substr(0, 4), "~nnn");
  EXPECT_EQ(ProgressLine("a\x1b]0;title\x07", 1, 0, 1), "a\\x1b]0;title\\x07  1 B  1 B/s");
}

TEST(CopyReport, SaysWhatWasDone) {
  CopyReport report{.files = 1, .bytes = 1536};
  EXPECT_EQ(report.ToText(), "1 file copied, 1.5 KiB\n");
  report = {.files = 2, .unchanged = 3, .links = 1, .failed = 4};
  EXPECT_EQ(report.ToText(), "2 files copied, 0 B, 3 already there, 1 link, 4 failed\n");
  EXPECT_EQ(report.ToJson()["unchanged"], 3);
}

}  // namespace
}  // namespace bridge::cli
