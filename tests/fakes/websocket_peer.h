// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/websocket_peer.h — the server's side of a WebSocket, frame by frame, on a
// RawConnection. Written from RFC 6455, not with the library under test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/fakes/raw_server.h"

namespace bridge {

struct WebSocketFrame {
  bool fin = true;
  int rsv = 0;
  int opcode = 0;  // 1 text, 2 binary, 8 close, 9 ping, 10 pong
  bool masked = false;
  std::string payload = {};
};

// A frame as the server sends it (not masked), or as a client would.
std::string EncodeFrame(const WebSocketFrame& frame);

// The next frame; nothing at the end of the connection.
std::optional<WebSocketFrame> ReadFrame(RawConnection& peer);

// Reads the client's request and accepts it. Returns the request's head.
std::string AcceptWebSocket(RawConnection& peer);
// The answer to a request that AcceptWebSocket would send.
std::string WebSocketAnswer(std::string_view request_head);

// The payload of a close frame.
std::string ClosePayload(uint16_t code, std::string_view reason = "");

}  // namespace bridge
