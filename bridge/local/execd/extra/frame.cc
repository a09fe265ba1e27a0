// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/frame.h"

namespace bridge::local::execd::extra {
namespace {

void AppendBigEndian(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift);
  }
}

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

std::string EncodeFrame(FrameType type, uint64_t offset, std::string_view payload) {
  std::string out;
  out.reserve(kFrameHeaderBytes + payload.size());
  out += static_cast<char>(type);
  out.append(3, '\0');
  AppendBigEndian(out, payload.size(), 4);
  AppendBigEndian(out, offset, 8);
  return out.append(payload);
}

std::optional<Frame> DecodeFrame(std::string_view message) {
  if (message.size() < kFrameHeaderBytes) return std::nullopt;
  if (BigEndian(message.substr(1, 3)) != 0) return std::nullopt;
  const uint64_t length = BigEndian(message.substr(4, 4));
  if (length > kMaxFramePayloadBytes || message.size() != kFrameHeaderBytes + length) {
    return std::nullopt;
  }
  return Frame{static_cast<uint8_t>(message[0]), BigEndian(message.substr(8, 8)),
               message.substr(kFrameHeaderBytes)};
}

}  // namespace bridge::local::execd::extra
