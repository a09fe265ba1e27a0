// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/websocket_peer.h"

#include "bridge/net/websocket_handshake.h"

namespace bridge {

std::string EncodeFrame(const WebSocketFrame& frame) {
  std::string bytes;
  bytes += static_cast<char>((frame.fin ? 0x80 : 0) | frame.rsv << 4 | frame.opcode);
  const size_t size = frame.payload.size();
  const int mask_bit = frame.masked ? 0x80 : 0;
  if (size < 126) {
    bytes += static_cast<char>(mask_bit | static_cast<int>(size));
  } else if (size < 65536) {
    bytes += static_cast<char>(mask_bit | 126);
    bytes += static_cast<char>(size >> 8);
    bytes += static_cast<char>(size);
  } else {
    bytes += static_cast<char>(mask_bit | 127);
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  }
  if (frame.masked) bytes += std::string(4, '\0');  // a mask that changes nothing
  return bytes + frame.payload;
}

std::optional<WebSocketFrame> ReadFrame(RawConnection& peer) {
  const auto byte = [](char c) { return static_cast<unsigned char>(c); };
  const std::string start = peer.Read(2);
  if (start.size() < 2) return std::nullopt;
  WebSocketFrame frame{.fin = (byte(start[0]) & 0x80) != 0,
                       .rsv = (byte(start[0]) >> 4) & 7,
                       .opcode = byte(start[0]) & 15,
                       .masked = (byte(start[1]) & 0x80) != 0};
  size_t size = byte(start[1]) & 0x7f;
  if (size >= 126) {
    const std::string longer = peer.Read(size == 126 ? 2 : 8);
    size = 0;
    for (const char c : longer) size = size << 8 | byte(c);
  }
  const std::string mask = frame.masked ? peer.Read(4) : std::string(4, '\0');
  frame.payload = peer.Read(size);
  if (mask.size() < 4 || frame.payload.size() < size) return std::nullopt;
  for (size_t i = 0; i < size; ++i)
    frame.payload[i] = static_cast<char>(frame.payload[i] ^ mask[i % 4]);
  return frame;
}

std::string WebSocketAnswer(std::string_view request_head) {
  constexpr std::string_view kName = "Sec-WebSocket-Key: ";
  const size_t start = request_head.find(kName) + kName.size();
  const std::string_view key = request_head.substr(start, request_head.find("\r\n", start) - start);
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: " +
         WebSocketAccept(key) + "\r\n\r\n";
}

std::string AcceptWebSocket(RawConnection& peer) {
  std::string head = peer.ReadHead();
  peer.Write(WebSocketAnswer(head));
  return head;
}

std::string ClosePayload(uint16_t code, std::string_view reason) {
  return std::string{static_cast<char>(code >> 8), static_cast<char>(code)} + std::string(reason);
}

}  // namespace bridge
