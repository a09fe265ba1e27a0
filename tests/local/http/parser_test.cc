// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/local/execd/splits.h"

namespace bridge::local::http {
namespace {

using execd::Describe;
using execd::ForEachSplit;
using execd::Pieces;

using ::testing::ElementsAre;
using ::testing::Pair;

struct Parsed {
  absl::Status status;
  std::string body;
  std::string rest;  // behind the message
};

// Feeds `pieces` as a connection would: what is not used up is offered again, with more behind it.
Parsed Feed(Parser& parser, const Pieces& pieces, size_t room = 4) {
  Parsed parsed;
  std::string buffer;
  for (const std::string_view piece : pieces) {
    buffer += piece;
    while (true) {
      char to[64];
      size_t written = 0;
      const auto used = parser.Feed(buffer, to, parser.head_done() ? room : 0, &written);
      if (!used.ok()) {
        parsed.status = used.status();
        return parsed;
      }
      const bool head_just_done = parser.head_done() && written == 0 && *used > 0;
      buffer.erase(0, *used);
      parsed.body.append(to, written);
      if (!head_just_done && written == 0) break;
    }
  }
  parsed.rest = buffer;
  return parsed;
}

constexpr char kChunked[] =
    "POST /x?y HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nT: 1\r\n\r\n";

TEST(Parser, ChunkedRequestInAllSplits) {
  ForEachSplit(kChunked, [](const Pieces& pieces) {
    Parser parser(Parser::Kind::kRequest, 4096);
    const Parsed parsed = Feed(parser, pieces);
    ASSERT_TRUE(parsed.status.ok()) << parsed.status << " at " << Describe(pieces);
    ASSERT_TRUE(parser.done()) << Describe(pieces);
    ASSERT_EQ(parsed.body, "hello world") << Describe(pieces);
    ASSERT_EQ(parser.head().method, "POST");
    ASSERT_EQ(parser.head().target, "/x?y");
    ASSERT_TRUE(parser.chunked());
  });
}

TEST(Parser, RequestWithLengthInAllSplitsLeavesWhatFollows) {
  ForEachSplit("PUT / HTTP/1.1\r\nContent-Length: 3\r\nA: b\r\nA: c\r\n\r\nabcGET",
               [](const Pieces& pieces) {
                 Parser parser(Parser::Kind::kRequest, 4096);
                 const Parsed parsed = Feed(parser, pieces);
                 ASSERT_TRUE(parsed.status.ok()) << parsed.status;
                 ASSERT_EQ(parsed.body, "abc") << Describe(pieces);
                 ASSERT_EQ(parsed.rest, "GET") << Describe(pieces);
                 ASSERT_EQ(parser.content_length(), 3u);
                 ASSERT_THAT(
                     parser.head().headers.items(),
                     ElementsAre(Pair("Content-Length", "3"), Pair("A", "b"), Pair("A", "c")));
               });
}

TEST(Parser, ResponseInAllSplits) {
  ForEachSplit("HTTP/1.1 418 I'm a Teapot\r\nContent-Length: 5\r\n\r\nshort",
               [](const Pieces& pieces) {
                 Parser parser(Parser::Kind::kResponse, 4096);
                 const Parsed parsed = Feed(parser, pieces);
                 ASSERT_TRUE(parser.done()) << Describe(pieces);
                 ASSERT_EQ(parser.head().status, 418);
                 ASSERT_EQ(parser.head().reason, "I'm a Teapot");
                 ASSERT_EQ(parsed.body, "short");
               });
}

TEST(Parser, ResponseUntilTheEnd) {
  Parser parser(Parser::Kind::kResponse, 4096);
  const Parsed parsed = Feed(parser, {"HTTP/1.1 200 OK\r\n\r\nall that ", "comes"});
  EXPECT_EQ(parsed.body, "all that comes");
  EXPECT_FALSE(parser.done());
  EXPECT_TRUE(parser.FeedEof().ok());
  EXPECT_TRUE(parser.done());
}

TEST(Parser, EndWithinAMessageIsAnError) {
  Parser chunked(Parser::Kind::kResponse, 4096);
  Feed(chunked, {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"});
  EXPECT_FALSE(chunked.FeedEof().ok());
  Parser sized(Parser::Kind::kResponse, 4096);
  Feed(sized, {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"});
  EXPECT_FALSE(sized.FeedEof().ok());
}

TEST(Parser, AnswerToHeadHasNoBody) {
  Parser parser(Parser::Kind::kResponse, 4096, /*no_body=*/true);
  Feed(parser, {"HTTP/1.1 200 OK\r\nContent-Length: 31\r\n\r\n"});
  EXPECT_TRUE(parser.done());
}

TEST(Parser, KnowsWhenTheConnectionStays) {
  const auto keeps = [](std::string_view request) {
    Parser parser(Parser::Kind::kRequest, 4096);
    Feed(parser, {request});
    return parser.keep_alive();
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(Parser, RefusesWhatIsNoHttp) {
  for (const char* bad :
       {"nonsense\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
    Parser parser(Parser::Kind::kRequest, 4096);
    EXPECT_TRUE(absl::IsInvalidArgument(Feed(parser, {bad}).status)) << bad;
  }
}

TEST(Parser, BoundsTheHead) {
  Parser parser(Parser::Kind::kRequest, 64);
  const std::string head = "GET / HTTP/1.1\r\nA: " + std::string(100, 'x') + "\r\n\r\n";
  EXPECT_TRUE(absl::IsResourceExhausted(Feed(parser, {head}).status));
}

}  // namespace
}  // namespace bridge::local::http
