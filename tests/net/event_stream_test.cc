// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Texts = std::vector<std::string>;

void Drain(EventStreamParser& parser, Texts* texts) {
  std::string_view text;
  while (parser.Next(&text)) texts->emplace_back(text);
}

// Every piece is a string of its own that is gone afterwards, so that a view kept too long shows.
Texts ParsePieces(const std::vector<std::string_view>& pieces) {
  EventStreamParser parser;
  Texts texts;
  for (const std::string_view piece : pieces) {
    std::string own(piece);
    parser.Feed(own);
    Drain(parser, &texts);
    own.assign(own.size(), '!');
  }
  parser.Finish();
  Drain(parser, &texts);
  EXPECT_TRUE(parser.status().ok());
  return texts;
}

// Parses `stream` under all partitions into one, two and three pieces.
void ExpectUnderAllPartitions(std::string_view stream, const Texts& expected) {
  ASSERT_EQ(ParsePieces({stream}), expected) << stream;
  for (size_t i = 0; i <= stream.size(); ++i) {
    for (size_t j = i; j <= stream.size(); ++j) {
      ASSERT_EQ(ParsePieces({stream.substr(0, i), stream.substr(i, j - i), stream.substr(j)}),
                expected)
          << i << ", " << j << " of " << stream;
    }
  }
}

// As execd wrote them (`echo hi`), and one with everything that could confuse a line parser.
const Texts& Events() {
  static const auto* events = new Texts{
      R"({"type":"init","text":"7283c039","timestamp":1795970443278})",
      R"({"type":"stdout","text":"hi: {data:} \r\n\n event:"})",
      R"({"type":"execution_complete","execution_time":5})",
  };
  return *events;
}

std::string Framed(const std::function<std::string(const std::string&)>& frame) {
  std::string stream;
  for (const std::string& event : Events()) stream += frame(event);
  return stream;
}

TEST(EventStreamParser, BareJsonAsExecdWritesIt) {
  ExpectUnderAllPartitions(Framed([](const std::string& e) { return e + "\n\n"; }), Events());
}

TEST(EventStreamParser, DataLinesWithASpace) {
  ExpectUnderAllPartitions(Framed([](const std::string& e) { return "data: " + e + "\n\n"; }),
                           Events());
}

TEST(EventStreamParser, DataLinesWithoutASpace) {
  ExpectUnderAllPartitions(Framed([](const std::string& e) { return "data:" + e + "\n\n"; }),
                           Events());
}

TEST(EventStreamParser, AllFramingsInOneStream) {
  ExpectUnderAllPartitions(
      Events()[0] + "\n\ndata: " + Events()[1] + "\n\ndata:" + Events()[2] + "\n\n", Events());
}

TEST(EventStreamParser, WithTheOtherFieldsOfTheFormat) {
  ExpectUnderAllPartitions(Framed([](const std::string& e) {
                             return "event: x\nid: 7\nretry: 10\ndata: " + e + "\n\n";
                           }),
                           Events());
}

TEST(EventStreamParser, CrLf) {
  ExpectUnderAllPartitions(Framed([](const std::string& e) { return e + "\r\n\r\n"; }), Events());
  ExpectUnderAllPartitions(
      Framed([](const std::string& e) { return "id: 1\r\ndata: " + e + "\r\n\r\n"; }), Events());
}

TEST(EventStreamParser, AByteOrderMarkInFront) {
  const std::string mark = "\xEF\xBB\xBF";
  ExpectUnderAllPartitions(mark + Framed([](const std::string& e) { return e + "\n\n"; }),
                           Events());
  ExpectUnderAllPartitions(
      mark + Framed([](const std::string& e) { return "data: " + e + "\n\n"; }), Events());
}

TEST(EventStreamParser, OneNewlineIsEnough) {
  ExpectUnderAllPartitions(Framed([](const std::string& e) { return e + "\n"; }), Events());
}

TEST(EventStreamParser, TheLastEventNeedsNoLineEnd) {
  for (const std::string end : {"", "\n", "\r\n", "\n\n", "\r"}) {
    ExpectUnderAllPartitions("{\"a\":1}\n\n{\"b\":2}" + end, {R"({"a":1})", R"({"b":2})"});
    ExpectUnderAllPartitions("data: {\"a\":1}" + end, {R"({"a":1})"});
  }
}

// Keep-alives of all kinds say nothing.
TEST(EventStreamParser, CommentsAndEmptyFieldsAreNoEvents) {
  ExpectUnderAllPartitions(": ping\n:\n\nevent: ping\n\nid\nretry: 3\ndata\ndata:\ndata: \n\n\n",
                           {});
  ExpectUnderAllPartitions(":ok\n\n{\"a\":1}\n\n: ping\n\nevent: ping\n\n", {R"({"a":1})"});
}

// A line that is neither JSON nor a field is not swallowed: who parses JSON will refuse it.
TEST(EventStreamParser, OtherLinesAreGivenOut) {
  ExpectUnderAllPartitions("<html>\n\nevents: 1\n[1]\n", {"<html>", "events: 1", "[1]"});
}

TEST(EventStreamParser, NothingIsNothing) {
  EXPECT_THAT(ParsePieces({}), IsEmpty());
  EXPECT_THAT(ParsePieces({"", ""}), IsEmpty());
  EXPECT_THAT(ParsePieces({"\n\n\r\n"}), IsEmpty());
}

// The half of an event at the end of a broken stream is given out as it is, not completed.
TEST(EventStreamParser, HalfAnEventStaysHalf) {
  EXPECT_THAT(ParsePieces({"{\"a\":1}\n\n{\"type\":\"std"}),
              ElementsAre(R"({"a":1})", R"({"type":"std)"));
}

TEST(EventStreamParser, ALineWithinOneChunkIsNotCopied) {
  const std::string chunk = "data: {\"a\":1}\n\n";
  EventStreamParser parser;
  parser.Feed(chunk);
  std::string_view text;
  ASSERT_TRUE(parser.Next(&text));
  EXPECT_EQ(text.data(), chunk.data() + 6);
}

TEST(EventStreamParser, EventsOfSixteenMebibytes) {
  std::string event = R"({"type":"stdout","text":")" + std::string(16 << 20, 'x') + R"("})";
  const std::string stream = event + "\n\n{\"b\":2}\n\n";
  EventStreamParser parser;
  Texts texts;
  // In small pieces: would take minutes if each looked at all of what came before.
  for (size_t at = 0; at < stream.size(); at += 512) {
    parser.Feed(std::string_view(stream).substr(at, 512));
    Drain(parser, &texts);
  }
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0], event);
  EXPECT_EQ(texts[1], R"({"b":2})");
}

TEST(EventStreamParser, TheMaximumIsExact) {
  const std::string line(100, 'x');
  for (const std::string prefix : {"", "\n\n", "{}\n"}) {
    EventStreamParser fits(100);
    Texts texts;
    fits.Feed(prefix);
    Drain(fits, &texts);
    fits.Feed(line);
    Drain(fits, &texts);
    fits.Feed("\n");
    Drain(fits, &texts);
    EXPECT_TRUE(fits.status().ok());
    EXPECT_EQ(texts.back(), line);
  }
}

// Whether the line ends or not, and wherever it is cut.
TEST(EventStreamParser, ALineAboveTheMaximumEndsTheStream) {
  for (const std::string end : {"", "\n\n{\"a\":1}\n"}) {
    const std::string stream = "{\"ok\":1}\n" + std::string(101, 'x') + end;
    for (size_t cut = 0; cut <= stream.size(); ++cut) {
      EventStreamParser parser(100);
      Texts texts;
      parser.Feed(std::string_view(stream).substr(0, cut));
      Drain(parser, &texts);
      parser.Feed(std::string_view(stream).substr(cut));
      Drain(parser, &texts);
      parser.Finish();
      Drain(parser, &texts);
      EXPECT_THAT(texts, ElementsAre(R"({"ok":1})"));
      EXPECT_EQ(ReasonOf(parser.status()), ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL);
    }
  }
}

}  // namespace
}  // namespace bridge
