// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/websocket_frame.h"

namespace bridge::local::http {
namespace {

bool IsControl(uint8_t opcode) { return (opcode & 0x8) != 0; }

bool IsKnown(uint8_t opcode) {
  return opcode <= kOpBinary || (opcode >= kOpClose && opcode <= kOpPong);
}

void AppendBigEndian(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void ApplyMask(char* bytes, size_t size, const std::array<uint8_t, 4>& mask) {
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(bytes[i] ^ mask[i % 4]);
}

}  // namespace

std::string EncodeFrame(uint8_t opcode, std::string_view payload, bool fin,
                        std::optional<std::array<uint8_t, 4>> mask) {
  std::string out;
  out.reserve(payload.size() + 14);
  out.push_back(static_cast<char>((fin ? 0x80 : 0) | opcode));
  const uint8_t mask_bit = mask ? 0x80 : 0;
  if (payload.size() < 126) {
    out.push_back(static_cast<char>(mask_bit | payload.size()));
  } else if (payload.size() < 65536) {
    out.push_back(static_cast<char>(mask_bit | 126));
    AppendBigEndian(out, payload.size(), 2);
  } else {
    out.push_back(static_cast<char>(mask_bit | 127));
    AppendBigEndian(out, payload.size(), 8);
  }
  if (mask) out.append(reinterpret_cast<const char*>(mask->data()), 4);
  const size_t start = out.size();
  out.append(payload);
  if (mask) ApplyMask(out.data() + start, payload.size(), *mask);
  return out;
}

std::string EncodeClose(uint16_t code, std::string_view reason) {
  std::string payload;
  if (code == 0) return payload;
  AppendBigEndian(payload, code, 2);
  payload.append(reason.substr(0, 123));  // control frames hold 125 bytes
  return payload;
}

void WebSocketFrameParser::Feed(std::string_view bytes) {
  if (used_ > 0 && used_ == buffer_.size()) {
    buffer_.clear();
    used_ = 0;
  } else if (used_ > 65536) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  buffer_.append(bytes);
}

absl::StatusOr<std::optional<WebSocketFrame>> WebSocketFrameParser::Next() {
  const std::string_view in = std::string_view(buffer_).substr(used_);
  if (in.size() < 2) return std::nullopt;
  const auto byte = [&in](size_t i) { return static_cast<uint8_t>(in[i]); };
  const uint8_t opcode = byte(0) & 0x0F;
  const bool fin = (byte(0) & 0x80) != 0;
  const bool masked = (byte(1) & 0x80) != 0;
  if ((byte(0) & 0x70) != 0) return absl::InvalidArgumentError("a reserved bit is set");
  if (!IsKnown(opcode)) return absl::InvalidArgumentError("unknown opcode");
  if (masked != expect_mask_) return absl::InvalidArgumentError("masking is wrong for this side");

  uint64_t length = byte(1) & 0x7F;
  size_t at = 2;
  const size_t length_bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
  if (IsControl(opcode) && (length_bytes != 0 || !fin)) {
    return absl::InvalidArgumentError("a control frame is fragmented or too long");
  }
  if (in.size() < at + length_bytes) return std::nullopt;
  if (length_bytes != 0) {
    length = 0;
    for (size_t i = 0; i < length_bytes; ++i) length = length << 8 | byte(at + i);
    at += length_bytes;
  }
  if (length > max_payload_) return absl::ResourceExhaustedError("the frame is too long");

  std::array<uint8_t, 4> mask{};
  if (masked) {
    if (in.size() < at + 4) return std::nullopt;
    for (size_t i = 0; i < 4; ++i) mask[i] = byte(at + i);
    at += 4;
  }
  if (in.size() - at < length) return std::nullopt;
  WebSocketFrame frame{fin, opcode, std::string(in.substr(at, length))};
  if (masked) ApplyMask(frame.payload.data(), frame.payload.size(), mask);
  used_ += at + length;
  return frame;
}

}  // namespace bridge::local::http
