// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/frame.h — the frames of `/v1/exec` (docs/execd-extras.md, "Frames"). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bridge::local::execd::extra {

enum class FrameType : uint8_t {
  kStdout = 0x01,
  kStderr = 0x02,
  kStarted = 0x10,
  kExited = 0x11,
  kDrained = 0x12,
  kHeartbeat = 0x13,
  kStdinAck = 0x14,
  kStdinClosed = 0x15,
  kError = 0x1f,
  kStdin = 0x21,
  kStdinEof = 0x22,
  kSignal = 0x23,
};

inline constexpr size_t kFrameHeaderBytes = 16;
inline constexpr size_t kMaxFramePayloadBytes = 262144;

std::string EncodeFrame(FrameType type, uint64_t offset, std::string_view payload);

struct Frame {
  uint8_t type = 0;
  uint64_t offset = 0;
  std::string_view payload;  // into the message
};

// A message that is exactly one frame; nothing when it is not.
std::optional<Frame> DecodeFrame(std::string_view message);

}  // namespace bridge::local::execd::extra
