// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_marker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace bridge {
namespace {

const std::string kNonce = "0123456789abcdef0123456789abcdef";
using Kind = ProcessMark::Kind;

using Piece = ProcessMarkScanner::Piece;
constexpr auto kOut = StreamId::kStdout;
constexpr auto kErr = StreamId::kStderr;

// Output as it is, marks as <kind value>.
std::string Text(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    EXPECT_NE(piece.data.empty(), !piece.mark.has_value());
    text += piece.data;
    if (piece.mark) {
      text += "<" + std::to_string(static_cast<int>(piece.mark->kind)) + " " +
              std::to_string(piece.mark->value) + ">";
    }
  }
  return text;
}

std::string Scan(const std::vector<std::string_view>& pieces) {
  ProcessMarkScanner scanner(kNonce, true);
  std::string seen;
  for (const std::string_view piece : pieces) seen += Text(scanner.Feed(kOut, piece));
  seen += Text(scanner.Release());
  EXPECT_FALSE(scanner.undecided());
  EXPECT_EQ(scanner.kept_bytes(), 0u);
  return seen;
}

// A byte of either stream, "o" or "e" in front of it; nothing for one of a mark.
std::string Tagged(std::optional<StreamId> stream, std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    text += stream ? (*stream == kOut ? 'o' : 'e') : '?';
    text += c;
  }
  return text;
}

// Two streams, each cut in three, in every order. What comes out is, in the order in which it came
// in, all but the marks; a mark behind its last byte.
struct TwoStreams {
  std::string before;  // both streams: this, a mark, this
  std::string behind;
  ProcessMark mark = {Kind::kExited, 3};

  std::string all() const { return before + FormatProcessMark(kNonce, mark) + behind; }
  void Feed(StreamId stream, size_t* at, size_t to) {
    const std::string bytes = all().substr(*at, to - *at);
    const size_t begin = before.size(), end = begin + kProcessMarkBytes;
    for (size_t i = *at; i < to; ++i) {
      if (i < begin || i >= end) expected += Tagged(stream, all().substr(i, 1));
      if (i + 1 == end) expected += "<>";
    }
    *at = to;
    Take(scanner.Feed(stream, bytes));
  }
  void Take(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      seen += piece.mark ? "<>" : Tagged(piece.stream, piece.data);
    }
    EXPECT_EQ(seen, expected.substr(0, seen.size()));
  }

  ProcessMarkScanner scanner{kNonce, false};
  std::string seen = {};
  std::string expected = {};
};

TEST(ProcessMark, HasAFixedLength) {
  EXPECT_EQ(FormatProcessMark(kNonce, {Kind::kExited, 7}), "\x1e" + kNonce + ":e:007:000000\x1e");
  EXPECT_EQ(FormatProcessMark(kNonce, {Kind::kStarted, 0, 123}),
            "\x1e" + kNonce + ":r:000:000123\x1e");
  EXPECT_EQ(FormatProcessMark(kNonce, {Kind::kSignal, 9}).size(), kProcessMarkBytes);
}

TEST(ProcessMark, ALetterAKind) {
  for (const auto& [letter, kind] : {std::pair{"r", Kind::kStarted},
                                     {"e", Kind::kExited},
                                     {"s", Kind::kSignal},
                                     {"f", Kind::kFailed},
                                     {"c", Kind::kCancelled}}) {
    EXPECT_EQ(ProcessMarkKind(letter), kind);
  }
  for (const char* none : {"", "x", "re", "-"}) EXPECT_FALSE(ProcessMarkKind(none)) << none;
}

TEST(ProcessMarkScanner, TakesMarksOutUnderAllSplits) {
  const std::string text = std::string("a\x1e\x1e") + "b" +
                           FormatProcessMark(kNonce, {Kind::kExited, 3}) +
                           FormatProcessMark(kNonce, {Kind::kStarted, 0}) + "c\x1e" + kNonce;
  const std::string expected = std::string("a\x1e\x1e") + "b<1 3><0 0>c\x1e" + kNonce;
  const std::string_view all = text;
  for (size_t i = 0; i <= all.size(); ++i) {
    for (size_t j = i; j <= all.size(); j += 3) {
      EXPECT_EQ(Scan({all.substr(0, i), all.substr(i, j - i), all.substr(j)}), expected);
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

TEST(ProcessMarkScanner, TakesMarksOutOfTwoStreamsUnderAllSplits) {
  constexpr const char* kOrders[] = {"oooeee", "ooeoee", "ooeeoe", "ooeeeo", "oeooee",
                                     "oeoeoe", "oeoeeo", "oeeooe", "oeeoeo", "oeeeoo"};
  const size_t size = 2 + kProcessMarkBytes + 1;
  for (size_t i = 0; i <= size; ++i) {
    for (size_t j = 0; j <= size; ++j) {
      for (const char* order : kOrders) {
        TwoStreams streams{.before = "a\x1e", .behind = "\x1e"};
        const size_t out_cuts[] = {i, std::max(i, j), size}, err_cuts[] = {j, (j + size) / 2, size};
        size_t out = 0, err = 0, out_at = 0, err_at = 0;
        for (const char c : std::string(order)) {
          c == 'o' ? streams.Feed(kOut, &out_at, out_cuts[out++])
                   : streams.Feed(kErr, &err_at, err_cuts[err++]);
        }
        streams.Take(streams.scanner.Release());
        ASSERT_EQ(streams.seen, streams.expected) << i << " " << j << " " << order;
      }
    }
  }
}

// A byte of a stream that went on elsewhere was given out behind younger ones, or never.
TEST(ProcessMarkScanner, WhatIsKeptBackKeepsTheOtherStreamBack) {
  ProcessMarkScanner scanner(kNonce, false);
  EXPECT_EQ(Text(scanner.Feed(kOut, "out\x1e")), "out");
  EXPECT_TRUE(scanner.undecided());
  EXPECT_EQ(Text(scanner.Feed(kErr, "err")), "");
  EXPECT_EQ(scanner.kept_bytes(), 4u);
  const std::vector<Piece> rest = scanner.Feed(kOut, "more");
  ASSERT_EQ(rest.size(), 3u);
  EXPECT_EQ(rest[0].data + "|" + rest[1].data + "|" + rest[2].data, "\x1e|err|more");
  EXPECT_EQ(rest[1].stream, kErr);
  EXPECT_FALSE(scanner.undecided());
}

// Whose the end of a replay is, only what follows can tell.
TEST(ProcessMarkScanner, AMarkThatBeginsInAReplayGoesOnInEitherStream) {
  const std::string mark = FormatProcessMark(kNonce, {Kind::kExited, 3});
  for (const StreamId stream : {kOut, kErr}) {
    const StreamId other = stream == kOut ? kErr : kOut;
    for (size_t cut = 1; cut < mark.size(); ++cut) {
      ProcessMarkScanner scanner(kNonce, false);
      EXPECT_EQ(Text(scanner.Feed(std::nullopt, "a" + mark.substr(0, cut))), "a");
      EXPECT_EQ(Text(scanner.Feed(other, "0")), "");
      EXPECT_EQ(Text(scanner.Feed(stream, mark.substr(cut) + "b")), "0<1 3>b");
      EXPECT_FALSE(scanner.undecided());
    }
    ProcessMarkScanner scanner(kNonce, false);
    EXPECT_EQ(Text(scanner.Feed(std::nullopt, "\x1e")), "");
    EXPECT_EQ(Text(scanner.Feed(stream, "x")), "");
    EXPECT_EQ(Text(scanner.Feed(other, "y")), "\x1exy");
  }
  ProcessMarkScanner terminal(kNonce, true);
  EXPECT_EQ(Text(terminal.Feed(std::nullopt, "\x1e")), "");
  EXPECT_EQ(Text(terminal.Feed(kOut, "x")), "\x1ex");
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
  EXPECT_TRUE(pipes.whole());
  pipes.Take({Kind::kExited, 0, 2});
  EXPECT_FALSE(pipes.whole()) << "it comes on the other stream, too";
  pipes.Take({Kind::kExited, 0, 2});
  EXPECT_EQ(pipes.ToApi(10 + 6 * kMark), 10);
  EXPECT_EQ(pipes.marks(), 3);
}

TEST(OutcomeOfMark, EachKind) {
  EXPECT_EQ(OutcomeOfMark({Kind::kExited, 3}), Outcome(ExitCode{3}));
  EXPECT_EQ(OutcomeOfMark({Kind::kSignal, 9}), Outcome(Signalled{9}));
  EXPECT_EQ(OutcomeOfMark({Kind::kCancelled, 9}), Outcome(CancelledEnd{true, Signalled{9}}));
  EXPECT_FALSE(OutcomeOfMark({Kind::kStarted, 0}).has_value());
  EXPECT_EQ(std::get<SpawnFailed>(*OutcomeOfMark({Kind::kFailed, 127})).kind,
            SpawnFailed::Kind::kNotFound);
  EXPECT_EQ(std::get<SpawnFailed>(*OutcomeOfMark({Kind::kFailed, 124})).kind,
            SpawnFailed::Kind::kBadCwd);
}

}  // namespace
}  // namespace bridge
