// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/frame.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge::local::execd::extra {
namespace {

// The layout of docs/execd-extras.md, written out.
const std::string kExample(
    "\x02\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x05"
    "abc",
    19);

TEST(Frame, LayoutAsDocumented) {
  EXPECT_EQ(EncodeFrame(FrameType::kStderr, 0x100000005, "abc"), kExample);
  const auto frame = DecodeFrame(kExample);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->type, 0x02);
  EXPECT_EQ(frame->offset, 0x100000005u);
  EXPECT_EQ(frame->payload, "abc");
}

TEST(Frame, EmptyPayloadAndTheLargest) {
  EXPECT_EQ(DecodeFrame(EncodeFrame(FrameType::kHeartbeat, 0, ""))->payload, "");
  const std::string largest(kMaxFramePayloadBytes, 'x');
  EXPECT_EQ(DecodeFrame(EncodeFrame(FrameType::kStdin, ~0ull, largest))->payload, largest);
  EXPECT_EQ(DecodeFrame(EncodeFrame(FrameType::kStdin, ~0ull, largest))->offset, ~0ull);
}

TEST(Frame, AMessageMustBeExactlyOne) {
  for (size_t n = 0; n < kExample.size(); ++n) {
    EXPECT_FALSE(DecodeFrame(kExample.substr(0, n)).has_value()) << n;
  }
  EXPECT_FALSE(DecodeFrame(kExample + "x").has_value());
  std::string reserved = kExample;
  reserved[2] = 1;
  EXPECT_FALSE(DecodeFrame(reserved).has_value());
  EXPECT_FALSE(
      DecodeFrame(EncodeFrame(FrameType::kStdin, 0, std::string(kMaxFramePayloadBytes + 1, 'x')))
          .has_value());
}

}  // namespace
}  // namespace bridge::local::execd::extra
