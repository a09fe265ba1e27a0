// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/line_splitter.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Sink final : LineSink {
  void OnLine(std::string line) override { lines.push_back(std::move(line)); }
  void OnOverlong(std::string_view beginning, uint64_t bytes) override {
    overlong.emplace_back(beginning.substr(0, 8), bytes);
  }
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, uint64_t>> overlong;
};

Sink Split(const std::vector<std::string_view>& parts, size_t max_bytes = 64) {
  Sink sink;
  LineSplitter splitter(max_bytes, sink);
  for (const std::string_view part : parts) splitter.Feed(part);
  splitter.Finish();
  return sink;
}

TEST(LineSplitter, GivesTheSameLinesHoweverTheyArrive) {
  const std::string text = "one\n\n  \t\ntwo\r\nthree \n" + std::string(70, 'x') + "\nfour";
  const Sink whole = Split({text});
  EXPECT_THAT(whole.lines, ElementsAre("one", "two", "three ", "four"));
  EXPECT_THAT(whole.overlong, ElementsAre(Pair("xxxxxxxx", 71)));
  for (size_t a = 0; a <= text.size(); ++a) {
    for (size_t b = a; b <= text.size(); ++b) {
      const std::string_view view = text;
      const Sink cut = Split({view.substr(0, a), view.substr(a, b - a), view.substr(b)});
      ASSERT_EQ(cut.lines, whole.lines) << a << " " << b;
      ASSERT_EQ(cut.overlong, whole.overlong) << a << " " << b;
    }
  }
}

TEST(LineSplitter, TakesSingleBytes) {
  Sink sink;
  LineSplitter splitter(64, sink);
  for (const char c : std::string("{\"a\":1}\r\n{}\n")) splitter.Feed({&c, 1});
  EXPECT_THAT(sink.lines, ElementsAre("{\"a\":1}", "{}"));
}

TEST(LineSplitter, CountsTheEndOfTheLine) {
  // At most 64 bytes with the "\n": 63 of text.
  EXPECT_THAT(Split({std::string(63, 'a') + "\n"}).lines, ElementsAre(std::string(63, 'a')));
  EXPECT_THAT(Split({std::string(64, 'a') + "\n"}).overlong, ElementsAre(Pair("aaaaaaaa", 65)));
}

TEST(LineSplitter, HasNothingForNothing) {
  EXPECT_THAT(Split({}).lines, IsEmpty());
  EXPECT_THAT(Split({"", "\n", "\r\n"}).lines, IsEmpty());
}

TEST(LineSplitter, KeepsOnlyTheBeginningOfAnEndlessLine) {
  struct Measuring final : LineSink {
    void OnLine(std::string line) override { last = std::move(line); }
    void OnOverlong(std::string_view beginning, uint64_t bytes) override {
      kept = beginning.size();
      total = bytes;
    }
    std::string last;
    size_t kept = 0;
    uint64_t total = 0;
  } sink;
  LineSplitter splitter(1 << 20, sink);
  const std::string chunk(1 << 16, 'y');
  for (int i = 0; i < 512; ++i) splitter.Feed(chunk);
  splitter.Feed("\nnext\n");
  EXPECT_EQ(sink.total, 512u * (1 << 16) + 1);
  EXPECT_EQ(sink.kept, 4096u);
  EXPECT_EQ(sink.last, "next");
}

}  // namespace
}  // namespace bridge::epp
