// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/websocket_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/local/execd/splits.h"

namespace bridge::local::http {
namespace {

using execd::Describe;
using execd::ForEachSplit;
using execd::Pieces;

using Mask = std::array<uint8_t, 4>;

std::vector<WebSocketFrame> ParseAll(WebSocketFrameParser& parser, const Pieces& pieces,
                                     absl::Status* status) {
  std::vector<WebSocketFrame> frames;
  for (const std::string_view piece : pieces) {
    parser.Feed(piece);
    while (true) {
      auto frame = parser.Next();
      if (!frame.ok()) {
        *status = frame.status();
        return frames;
      }
      if (!frame->has_value()) break;
      frames.push_back(**frame);
    }
  }
  return frames;
}

// The examples of RFC 6455 section 5.7.
TEST(Frame, ExamplesOfTheStandard) {
  const std::string unmasked("\x81\x05Hello", 7);
  EXPECT_EQ(EncodeFrame(kOpText, "Hello", true, std::nullopt), unmasked);
  const std::string masked("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
  EXPECT_EQ(EncodeFrame(kOpText, "Hello", true, Mask{0x37, 0xfa, 0x21, 0x3d}), masked);
  EXPECT_EQ(EncodeFrame(kOpText, "Hel", false, std::nullopt), std::string("\x01\x03Hel", 5));
  EXPECT_EQ(EncodeFrame(kOpContinuation, "lo", true, std::nullopt), std::string("\x80\x02lo", 4));
  EXPECT_EQ(EncodeFrame(kOpPing, "Hello", true, std::nullopt), std::string("\x89\x05Hello", 7));
  EXPECT_EQ(EncodeFrame(kOpBinary, std::string(256, 'x'), true, std::nullopt).substr(0, 4),
            std::string("\x82\x7E\x01\x00", 4));
  EXPECT_EQ(EncodeFrame(kOpBinary, std::string(65536, 'x'), true, std::nullopt).substr(0, 10),
            std::string("\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00", 10));
}

TEST(Frame, ParsesInAllSplits) {
  const std::string wire = EncodeFrame(kOpText, "Hello", false, Mask{1, 2, 3, 4}) +
                           EncodeFrame(kOpPing, "", true, Mask{9, 9, 9, 9}) +
                           EncodeFrame(kOpContinuation, "!", true, Mask{5, 6, 7, 8});
  ForEachSplit(wire, [](const Pieces& pieces) {
    WebSocketFrameParser parser(true, 1000);
    absl::Status status;
    const auto frames = ParseAll(parser, pieces, &status);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(frames.size(), 3u) << Describe(pieces);
    ASSERT_EQ(frames[0].payload, "Hello");
    ASSERT_FALSE(frames[0].fin);
    ASSERT_EQ(frames[1].opcode, kOpPing);
    ASSERT_EQ(frames[2].payload, "!");
    ASSERT_TRUE(frames[2].fin);
  });
}

TEST(Frame, LengthsAroundTheirBorders) {
  for (const size_t size : {0u, 1u, 125u, 126u, 127u, 65535u, 65536u, 200000u}) {
    std::string payload(size, '\0');
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 31);
    const std::string wire = EncodeFrame(kOpBinary, payload, true, Mask{0xff, 0, 0x7f, 1});
    WebSocketFrameParser parser(true, 1 << 20);
    absl::Status status;
    const auto frames = ParseAll(parser, {wire}, &status);
    ASSERT_EQ(frames.size(), 1u) << size;
    EXPECT_EQ(frames[0].payload, payload) << size;
  }
}

TEST(Frame, RefusesViolations) {
  struct Case {
    const char* why;
    std::string wire;
  };
  const std::vector<Case> cases = {
      {"unmasked from a client", EncodeFrame(kOpText, "a", true, std::nullopt)},
      {"reserved bit", "\xC1" + EncodeFrame(kOpText, "a", true, Mask{}).substr(1)},
      {"unknown opcode", EncodeFrame(0x3, "a", true, Mask{})},
      {"fragmented ping", EncodeFrame(kOpPing, "a", false, Mask{})},
      {"long ping", EncodeFrame(kOpPing, std::string(126, 'a'), true, Mask{})},
  };
  for (const Case& c : cases) {
    WebSocketFrameParser parser(true, 1000);
    absl::Status status;
    ParseAll(parser, {c.wire}, &status);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.why;
  }
  WebSocketFrameParser server_side(false, 1000);
  absl::Status status;
  ParseAll(server_side, {EncodeFrame(kOpText, "a", true, Mask{})}, &status);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << "masked from a server";
}

TEST(Frame, BoundsPayloadsBeforeTheyArrive) {
  WebSocketFrameParser parser(false, 1000);
  absl::Status status;
  ParseAll(parser, {std::string("\x82\x7F\x7f\xff\xff\xff\xff\xff\xff\xff", 10)}, &status);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
}

TEST(Close, HoldsCodeAndAShortReason) {
  EXPECT_EQ(EncodeClose(0, "ignored"), "");
  EXPECT_EQ(EncodeClose(1000, "bye"), std::string("\x03\xe8") + "bye");
  EXPECT_EQ(EncodeClose(1000, std::string(200, 'x')).size(), 125u);
}

}  // namespace
}  // namespace bridge::local::http
