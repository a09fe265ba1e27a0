// SPDX-License-Identifier: Apache-2.0
//
// local/http/websocket_frame.h — WebSocket frames (RFC 6455 section 5) to and from bytes.
// No extensions: a set reserved bit is an error. Pure; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace bridge::local::http {

inline constexpr uint8_t kOpContinuation = 0x0;
inline constexpr uint8_t kOpText = 0x1;
inline constexpr uint8_t kOpBinary = 0x2;
inline constexpr uint8_t kOpClose = 0x8;
inline constexpr uint8_t kOpPing = 0x9;
inline constexpr uint8_t kOpPong = 0xA;

struct WebSocketFrame {
  bool fin = true;
  uint8_t opcode = kOpBinary;
  std::string payload;  // unmasked
};

// Bytes of one frame, masked if `mask` is given.
std::string EncodeFrame(uint8_t opcode, std::string_view payload, bool fin,
                        std::optional<std::array<uint8_t, 4>> mask);

// Payload of a close frame; code 0 = empty.
std::string EncodeClose(uint16_t code, std::string_view reason);

class WebSocketFrameParser {
 public:
  // expect_mask: the peer is a client. A frame longer than max_payload is RESOURCE_EXHAUSTED; a
  // protocol violation is INVALID_ARGUMENT.
  WebSocketFrameParser(bool expect_mask, size_t max_payload)
      : expect_mask_(expect_mask), max_payload_(max_payload) {}

  void Feed(std::string_view bytes);
  // The next complete frame, nothing if more bytes are needed.
  absl::StatusOr<std::optional<WebSocketFrame>> Next();

 private:
  const bool expect_mask_;
  const size_t max_payload_;
  std::string buffer_;
  size_t used_ = 0;  // of buffer_
};

}  // namespace bridge::local::http
