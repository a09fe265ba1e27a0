// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_marker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bridge {
namespace {

const std::string kNonce = "0123456789abcdef0123456789abcdef";
using Kind = ProcessMark::Kind;

// What came, as text: output as it is, marks as <kind value @offset>.
std::string Scan(const std::vector<std::string_view>& pieces, int64_t offset = 0) {
  ProcessMarkScanner scanner(kNonce);
  std::string seen;
  int64_t expected = offset;
  const auto take = [&](const std::vector<ProcessMarkScanner::Piece>& got) {
    for (const auto& piece : got) {
      EXPECT_EQ(piece.offset, expected);
      if (piece.mark) {
        seen += "<" + std::to_string(static_cast<int>(piece.mark->kind)) + " " +
                std::to_string(piece.mark->value) + ">";
        expected += static_cast<int64_t>(kProcessMarkBytes);
      } else {
        seen += piece.data;
        expected += static_cast<int64_t>(piece.data.size());
      }
    }
  };
  for (const std::string_view piece : pieces) {
    take(scanner.Feed(piece, offset));
    offset += static_cast<int64_t>(piece.size());
  }
  take(scanner.Finish());
  return seen;
}

TEST(ProcessMark, HasAFixedLength) {
  EXPECT_EQ(FormatProcessMark(kNonce, {Kind::kExited, 7}), "\x1e" + kNonce + ":e:007:000000\x1e");
  EXPECT_EQ(FormatProcessMark(kNonce, {Kind::kStarted, 0, 123}),
            "\x1e" + kNonce + ":r:000:000123\x1e");
  EXPECT_EQ(FormatProcessMark(kNonce, {Kind::kSignal, 9}).size(), kProcessMarkBytes);
}

TEST(ProcessMarkScanner, TakesMarksOutUnderAllSplits) {
  const std::string text = std::string("a\x1e\x1e") + "b" +
                           FormatProcessMark(kNonce, {Kind::kExited, 3}) +
                           FormatProcessMark(kNonce, {Kind::kStarted, 0}) + "c\x1e" + kNonce;
  const std::string expected = std::string("a\x1e\x1e") + "b<1 3><0 0>c\x1e" + kNonce;
  const std::string_view all = text;
  for (size_t i = 0; i <= all.size(); ++i) {
    for (size_t j = i; j <= all.size(); j += 3) {
      EXPECT_EQ(Scan({all.substr(0, i), all.substr(i, j - i), all.substr(j)}, 1000), expected);
    }
  }
}

TEST(ProcessMarkScanner, WhatOnlyLooksLikeAMarkIsOutput) {
  for (const std::string& text :
       {"\x1e" + kNonce + ":x:007\x1e", "\x1e" + kNonce + ":e:0a7\x1e", "\x1e" + kNonce + ":e:007!",
        "\x1e" + std::string(32, 'f') + ":e:007\x1e", std::string(100, '\x1e')}) {
    EXPECT_EQ(Scan({text}), text);
  }
}

TEST(ProcessNumbering, LeavesMarksOut) {
  constexpr int64_t kMark = kProcessMarkBytes;
  ProcessNumbering terminal(true);
  EXPECT_EQ(terminal.ToApi(10), 10);
  EXPECT_EQ(terminal.run(), 0);
  terminal.Take({Kind::kExited, 0, 0});
  EXPECT_EQ(terminal.ToApi(10 + kMark), 10);
  EXPECT_EQ(terminal.run(), 1) << "the next one";
  terminal.Take({Kind::kStarted, 0, 1});
  EXPECT_EQ(terminal.ToApi(10 + 2 * kMark), 10);
  EXPECT_EQ(terminal.run(), 1);
  ProcessNumbering pipes(false);
  pipes.Begin(2);
  EXPECT_EQ(pipes.ToApi(10 + 4 * kMark), 10);
  EXPECT_EQ(pipes.run(), 1);
  pipes.Take({Kind::kExited, 0, 2});
  pipes.Take({Kind::kExited, 0, 2});
  EXPECT_EQ(pipes.ToApi(10 + 6 * kMark), 10);
  EXPECT_EQ(pipes.marks(), 3);
}

TEST(OutcomeOfMark, EachKind) {
  EXPECT_EQ(OutcomeOfMark({Kind::kExited, 3}), Outcome(ExitCode{3}));
  EXPECT_EQ(OutcomeOfMark({Kind::kSignal, 9}), Outcome(Signalled{9}));
  EXPECT_FALSE(OutcomeOfMark({Kind::kStarted, 0}).has_value());
  EXPECT_EQ(std::get<SpawnFailed>(*OutcomeOfMark({Kind::kFailed, 127})).kind,
            SpawnFailed::Kind::kNotFound);
  EXPECT_EQ(std::get<SpawnFailed>(*OutcomeOfMark({Kind::kFailed, 124})).kind,
            SpawnFailed::Kind::kBadCwd);
}

}  // namespace
}  // namespace bridge
