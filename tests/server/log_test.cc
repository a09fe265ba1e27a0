// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace bridge {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

std::vector<std::string> LinesOf(LogLevel level, const std::function<void(Log&)>& write) {
  std::vector<std::string> lines;
  std::mutex mu;
  {
    Log log(level, [&](std::string_view line) {
      std::lock_guard<std::mutex> lock(mu);
      lines.emplace_back(line);
    });
    write(log);
  }  // what was written has arrived
  return lines;
}

TEST(LogValue, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(LogValue("plain-1.5s/x:y"), "plain-1.5s/x:y");
  EXPECT_EQ(LogValue(""), "\"\"");
  EXPECT_EQ(LogValue("two words"), "\"two words\"");
  EXPECT_EQ(LogValue("a=b"), "\"a=b\"");
  EXPECT_EQ(LogValue("say \"hi\" \\"), "\"say \\\"hi\\\" \\\\\"");
  EXPECT_EQ(LogValue("na\xC3\xAFve"), "\"na\xC3\xAFve\"");
}

// Nobody who chooses a text can start a line of the log, or move a terminal's cursor.
TEST(LogValue, ControlCharactersNeverGetOut) {
  EXPECT_EQ(LogValue("a\nlevel=error msg=forged"), "\"a\\nlevel=error msg=forged\"");
  EXPECT_EQ(LogValue("\x1b[31m\r\t\x7f"), "\"\\x1b[31m\\x0d\\x09\\x7f\"");
  EXPECT_EQ(LogValue("\xFF"), "\"\xEF\xBF\xBD\"");
}

TEST(LogValue, LongTextIsCutBetweenCharacters) {
  const std::string value = LogValue(std::string(399, 'x') + "\xC3\xA9tail");
  EXPECT_EQ(value, "\"" + std::string(399, 'x') + "...\"");
}

TEST(Log, WritesTimeLevelMessageAndFields) {
  const auto lines = LinesOf(LogLevel::kInfo, [](Log& log) {
    log.Write(LogLevel::kWarning, "something happened",
              {{"count", "3"}, {"empty", ""}, {"why", "no reason"}});
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              MatchesRegex("time=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z "
                           "level=warning msg=\"something happened\" count=3 why=\"no reason\"\n"));
}

TEST(Log, LeavesOutWhatIsBelowItsLevel) {
  const auto lines = LinesOf(LogLevel::kWarning, [](Log& log) {
    log.Write(LogLevel::kDebug, "a");
    log.Write(LogLevel::kInfo, "b");
    log.Write(LogLevel::kError, "c");
    EXPECT_FALSE(log.enabled(LogLevel::kInfo));
    EXPECT_TRUE(log.enabled(LogLevel::kError));
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], EndsWith("level=error msg=c\n"));
}

TEST(Log, OffIsOff) {
  EXPECT_THAT(LinesOf(LogLevel::kOff, [](Log& log) { log.Write(LogLevel::kError, "x"); }),
              SizeIs(0));
}

// A reader of stderr that is stuck must not stop the bridge.
TEST(Log, AStuckReaderLosesLinesInsteadOfBlockingWriters) {
  std::mutex mu;
  std::condition_variable changed;
  bool open = false;
  int taken = 0;
  Log log(LogLevel::kInfo, [&](std::string_view) {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return open; });
    ++taken;
  });
  for (int i = 0; i < 20'000; ++i) log.Write(LogLevel::kInfo, "line");
  EXPECT_GT(log.dropped(), 10'000);
  std::lock_guard<std::mutex> lock(mu);
  EXPECT_EQ(taken, 0);
  open = true;
  changed.notify_all();
}

TEST(ParseLogLevel, KnowsItsWords) {
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(*ParseLogLevel("off"), LogLevel::kOff);
  EXPECT_THAT(std::string(ParseLogLevel("verbose").status().message()), HasSubstr("log_level"));
}

}  // namespace
}  // namespace bridge
