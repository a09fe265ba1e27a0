// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/local/execd/splits.h"

namespace bridge::local::execd {
namespace {

using Lines = std::vector<std::string>;

template <typename Splitter>
Lines Split(const Pieces& pieces) {
  Lines lines;
  const LineSink sink = [&](std::string_view line) { lines.emplace_back(line); };
  Splitter splitter;
  for (const std::string_view piece : pieces) splitter.Feed(piece, sink);
  splitter.Finish(sink);
  return lines;
}

template <typename Splitter>
void ExpectLines(std::string_view input, const Lines& expected) {
  ForEachSplit(input, [&](const Pieces& pieces) {
    ASSERT_EQ(Split<Splitter>(pieces), expected) << "cut into " << Describe(pieces);
  });
}

// Recordings cr-and-crlf, empty-lines, only-newlines, no-trailing-newline, invalid-utf8.
TEST(CommandLineSplitter, CutsAsRecorded) {
  ExpectLines<CommandLineSplitter>("a\rb\rc\r\nd\r\n\r\ne", {"a", "b", "c", "d", "\n", "e"});
  ExpectLines<CommandLineSplitter>("a\n\n\nb\n", {"a", "\n", "\n", "b"});
  ExpectLines<CommandLineSplitter>("\n\n", {"\n", "\n"});
  ExpectLines<CommandLineSplitter>("abc", {"abc"});
  ExpectLines<CommandLineSplitter>("", {});
  ExpectLines<CommandLineSplitter>("x\xff\xfe\x80y\n", {"x\xff\xfe\x80y"});
}

TEST(CommandLineSplitter, CarriageReturnsAlone) {
  ExpectLines<CommandLineSplitter>("\r\r\n\r", {"\n", "\n", "\n"});
  ExpectLines<CommandLineSplitter>("a\r\n\nb", {"a", "\n", "b"});
  ExpectLines<CommandLineSplitter>("\n\ra", {"\n", "\n", "a"});
}

TEST(CommandLineSplitter, ALineThatCarriageReturnEndsComesAtOnce) {
  Lines lines;
  const LineSink sink = [&](std::string_view line) { lines.emplace_back(line); };
  CommandLineSplitter splitter;
  splitter.Feed("10%\r", sink);
  EXPECT_EQ(lines, Lines({"10%"}));
  splitter.Feed("\n", sink);
  EXPECT_EQ(lines, Lines({"10%"}));
  splitter.Feed("\n", sink);
  EXPECT_EQ(lines, Lines({"10%", "\n"}));
}

TEST(CommandLineSplitter, AnUnfinishedLineWaitsForTheEnd) {
  Lines lines;
  const LineSink sink = [&](std::string_view line) { lines.emplace_back(line); };
  CommandLineSplitter splitter;
  splitter.Feed("prompt> ", sink);
  EXPECT_TRUE(lines.empty());
  splitter.Finish(sink);
  EXPECT_EQ(lines, Lines({"prompt> "}));
  splitter.Finish(sink);
  EXPECT_EQ(lines.size(), 1u);
}

// Recordings session-cr, session-blank-lines, session-no-newline.
TEST(SessionLineSplitter, CutsAsRecorded) {
  ExpectLines<SessionLineSplitter>(
      "a\rb\r\nc\xff"
      "d\n",
      {"a\rb",
       "c\xff"
       "d"});
  ExpectLines<SessionLineSplitter>("a\n\n\nb\n", {"a", "b"});
  ExpectLines<SessionLineSplitter>("abc", {"abc"});
  ExpectLines<SessionLineSplitter>("\r\n\r", {});
  ExpectLines<SessionLineSplitter>("a\r\r\n", {"a\r"});
}

}  // namespace
}  // namespace bridge::local::execd
