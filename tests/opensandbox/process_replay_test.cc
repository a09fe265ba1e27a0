// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_replay.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace bridge {
namespace {

using Kind = ProcessMark::Kind;

const std::string kNonce = "93c1d7be820f5a64c7e2b0d91f38a65b";
constexpr int64_t kSpread = 300;

std::string Mark(int number) {
  return FormatProcessMark(kNonce, {number % 2 == 0 ? Kind::kExited : Kind::kStarted, 0, number});
}

// All that a daemon has read, as it numbers it.
struct Log {
  std::string bytes;
  std::vector<bool> hidden = {};  // bytes of marks

  void Print(std::string_view text) { Add(text, false); }
  void PrintMark(std::string_view part) { Add(part, true); }
  std::string OutputFrom(size_t at) const {
    std::string text;
    for (; at < bytes.size(); ++at) {
      if (!hidden[at]) text += bytes[at];
    }
    return text;
  }

 private:
  void Add(std::string_view text, bool is_hidden) {
    bytes += text;
    hidden.insert(hidden.end(), text.size(), is_hidden);
  }
};

// What a client gets of a replay from byte `since` on.
struct Got {
  std::string output = {};
  int64_t first = 0;  // the number that it is told
  int64_t end = 0;
  bool last_copy = false;
};

Got Attach(const Log& log, size_t since, bool terminal, int marks_told) {
  const ProcessReplay replay = PutReplayInOrder(kNonce, terminal, static_cast<int64_t>(since),
                                                log.bytes.substr(since), kSpread);
  ProcessNumbering numbering(terminal);
  numbering.Begin(marks_told);
  if (replay.before) numbering.Begin(replay.before->marks, replay.before->hidden);
  Got got{.first = numbering.ToApi(replay.offset)};
  if (replay.before) got.last_copy = replay.before->last_copy;
  ProcessMarkScanner scanner(kNonce, terminal);
  std::vector<ProcessMarkScanner::Piece> pieces = scanner.Feed(std::nullopt, replay.data);
  for (auto& piece : scanner.Release()) pieces.push_back(piece);
  for (const auto& piece : pieces) {
    got.output += piece.data;
    if (piece.mark) numbering.Take(*piece.mark);
  }
  got.end = got.first + static_cast<int64_t>(got.output.size());
  // The same, in the daemon's numbers.
  EXPECT_EQ(got.end, numbering.ToApi(static_cast<int64_t>(log.bytes.size())));
  return got;
}

// From every byte on, but for a mark's last one, which may be the program's, and the first part of
// one that lies there in two, whose second part may be too little to be known for one.
void CheckEverySince(const Log& log, bool terminal, int marks, size_t cut_begin = 0,
                     size_t cut_end = 0) {
  const auto all = static_cast<int64_t>(log.OutputFrom(0).size());
  for (size_t since = 0; since + 2 * kSpread < log.bytes.size(); ++since) {
    const Got got = Attach(log, since, terminal, marks);
    ASSERT_EQ(got.end, all) << since;
    const std::string expected = log.OutputFrom(since);
    const bool last = log.bytes[since] == kProcessMarkEdge && log.bytes[since + 1] != kNonce[0];
    if ((since > cut_begin && since < cut_end) || last) continue;
    ASSERT_EQ(got.output, expected) << since;
  }
}

const std::string kLong(2 * kSpread + 10, 'l');

TEST(ProcessReplay, AMarkInTwoParts) {
  const std::string mark = Mark(0);
  const std::vector<std::string> others = {
      "x", "some more\n", "\x1e", "\x1e\x1e", "12:3", "a:e:0", "\x1e" + std::string(31, 'a')};
  for (const std::string& other : others) {
    for (size_t cut = 1; cut < mark.size(); ++cut) {
      for (const bool mark_between : {false, true}) {
        Log log;
        log.Print("before");
        log.PrintMark(mark.substr(0, cut));
        log.Print("other ");
        if (mark_between) {
          log.PrintMark(mark);
          log.Print("-");
        }
        // Where a part is nothing but an edge, a lone one between could be either.
        const bool edge = cut == 1 || cut + 1 == mark.size();
        if (!edge || other.find('\x1e') == std::string::npos) log.Print(other);
        log.Print("!");
        log.PrintMark(mark.substr(cut));
        if (!mark_between) log.PrintMark(mark);
        log.Print("behind" + kLong);
        const Got got = Attach(log, 0, false, 0);
        ASSERT_EQ(got.output, log.OutputFrom(0)) << cut << " " << other;
        ASSERT_EQ(got.first, 0);
        ASSERT_FALSE(got.last_copy);
      }
    }
  }
}

// Both streams' marks lie in parts. (With output between them: a part that goes on as its neighbour
// does, or is but an edge beside another one, may be either's.)
TEST(ProcessReplay, TwoMarksInTwoParts) {
  const std::string mark = Mark(0);
  for (size_t out = 2; out + 1 < mark.size(); ++out) {
    for (size_t err = 2; err + 1 < mark.size(); ++err) {
      for (const bool first_ends_first : {false, true}) {
        Log log;
        log.PrintMark(mark.substr(0, out));
        log.Print("w");
        log.PrintMark(mark.substr(0, err));
        log.Print("x");
        log.PrintMark(mark.substr(first_ends_first ? out : err));
        log.Print("y");
        log.PrintMark(mark.substr(first_ends_first ? err : out));
        log.Print("z");
        ASSERT_EQ(Attach(log, 0, false, 0).output, "wxyz") << out << " " << err;
      }
    }
  }
}

TEST(ProcessReplay, NumbersFromEveryByteOn) {
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{9}, size_t{20}, size_t{40}, size_t{46}}) {
    Log log;
    log.Print("begin" + kLong);
    log.PrintMark(Mark(0));
    log.Print("other");
    const size_t begin = log.bytes.size();
    log.PrintMark(Mark(0).substr(0, cut));
    log.Print("o");
    const size_t end = log.bytes.size();
    log.PrintMark(Mark(0).substr(cut));
    log.PrintMark(Mark(1));
    log.Print("other");
    log.PrintMark(Mark(1));
    log.Print("second run" + kLong);
    CheckEverySince(log, false, 2, begin, end);
    log.PrintMark(Mark(2));
    log.Print("other" + std::string(100, 'm'));
    {
      SCOPED_TRACE("the other copy of the last one is still to come");
      CheckEverySince(log, false, 3, begin, end);
    }
    log.PrintMark(Mark(2));
    CheckEverySince(log, false, 3, begin, end);
  }
}

TEST(ProcessReplay, NumbersOfATerminal) {
  Log log;
  log.Print("begin" + kLong);
  log.PrintMark(Mark(0));
  log.Print("-");
  log.PrintMark(Mark(1));
  log.Print("run" + kLong);
  CheckEverySince(log, true, 2);
}

// The end was told on both streams, but the replay begins between.
TEST(ProcessReplay, TheOtherCopyOfTheLastMarkLiesBefore) {
  Log log;
  log.Print("begin");
  log.PrintMark(Mark(0));
  log.Print("other");
  log.PrintMark(Mark(0));
  log.Print("left behind" + kLong);
  for (size_t since = 0; since < log.bytes.find("other"); ++since) {
    EXPECT_EQ(Attach(log, since, false, 1).last_copy, since > 5) << since;
  }
}

// The rest of a mark is still to come, alone or behind the other stream's output.
TEST(ProcessReplay, AMarkThatGoesOnBehindTheReplay) {
  const std::string mark = Mark(0);
  for (size_t cut = 17; cut < mark.size(); ++cut) {
    for (const StreamId stream : {StreamId::kStdout, StreamId::kStderr}) {
      const ProcessReplay replay =
          PutReplayInOrder(kNonce, false, 0, "out" + mark.substr(0, cut) + "other", kSpread);
      EXPECT_FALSE(replay.before.has_value());
      ProcessMarkScanner scanner(kNonce, false);
      std::string seen;
      for (const auto& piece : scanner.Feed(std::nullopt, replay.data)) seen += piece.data;
      EXPECT_EQ(seen, "outother");
      const auto rest = scanner.Feed(stream, mark.substr(cut) + "x");
      ASSERT_EQ(rest.size(), 2u);
      EXPECT_TRUE(rest[0].mark.has_value());
      EXPECT_EQ(rest[1].data, "x");
    }
  }
}

// A program may know its nonce, and print what it likes: nothing gets lost, and it takes no time.
TEST(ProcessReplay, PartsThatAProgramPrints) {
  const std::string mark = Mark(0);
  for (const std::string& part :
       {mark.substr(0, 20), mark.substr(10), mark.substr(17), "x" + mark.substr(2),
        mark.substr(0, 46), mark.substr(0, 17) + "\x1e", mark}) {
    std::string data;
    while (data.size() < 1 << 20) data += part;
    for (const int64_t offset : {0, 1, 1 << 20}) {
      const auto begin = std::chrono::steady_clock::now();
      const ProcessReplay replay = PutReplayInOrder(kNonce, false, offset, data);
      // Seconds without a bound; a sanitizer is slow.
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
      EXPECT_EQ(replay.data.size() + static_cast<size_t>(replay.offset - offset), data.size());
      if (replay.before) {
        EXPECT_GE(replay.before->hidden, 0);
        EXPECT_LE(replay.before->hidden, replay.offset);
      }
    }
  }
}

}  // namespace
}  // namespace bridge
