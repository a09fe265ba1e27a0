// SPDX-License-Identifier: Apache-2.0
//
// net/websocket_handshake.h — how an HTTP connection becomes a WebSocket (RFC 6455, section 4).
// The texts are pure functions; Handshake() does the talking. For net/ only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "bridge/net/connection.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/net/url.h"

namespace bridge {

// 16 random bytes in base64.
std::string MakeWebSocketKey();
// What the server must answer to a key.
std::string WebSocketAccept(std::string_view key);

std::string UpgradeRequest(const UrlParts& url, const HttpHeaders& headers, std::string_view key);

// The head of an answer, without the empty line. Nothing: not HTTP/1.
std::optional<HttpHead> ParseResponseHead(std::string_view text);

// OK when the head says that the connection is a WebSocket now.
absl::Status CheckUpgrade(std::string_view url, const HttpHead& head, std::string_view key);

// What a body in chunked coding holds, as far as it has come. *complete: nothing more will come, be
// it that the last chunk is there or that the coding is broken.
std::string DecodeChunks(std::string_view coded, bool* complete);

struct HandshakeResult {
  absl::Status status;
  std::optional<HttpResponse> refusal;  // the answer, when it was not 101
  std::string early;                    // bytes of the first frames, which came with the head
};

// Asks for a WebSocket on a fresh connection. The result is complete also when it was cancelled
// while it read the body of a refusal. `*result` must outlive the task.
Task<void> Handshake(EventLoop& loop, Connection& connection, std::string url, HttpHeaders headers,
                     size_t max_refusal_bytes, HandshakeResult* result);

}  // namespace bridge
