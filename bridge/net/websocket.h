// SPDX-License-Identifier: Apache-2.0
//
// net/websocket.h — a WebSocket client (RFC 6455) for tasks. Connections, TLS, proxies and names
// are curl's, frames are wslay's; this header names neither.
//
// A local variable of the task that wants it; the loop's thread only. One task may Read() while
// another one Write()s. Pings of the peer are answered, and own ones sent when nothing came for
// ping_interval, whether or not anybody reads. Errors as in net/http.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"

namespace bridge {

enum class WebSocketKind { kText, kBinary };

struct WebSocketMessage {
  WebSocketKind kind = WebSocketKind::kBinary;
  std::string data = {};
};

// How a connection ended.
struct WebSocketEnd {
  // The peer's close code, 1005 when its close frame had none. Nothing: the connection was lost
  // without a close frame, or is still open.
  std::optional<uint16_t> code = {};
  std::string reason = {};
  // Why it was lost, or what the peer did wrong; OK after a close frame.
  absl::Status status = {};
};

struct WebSocketOptions {
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration answer_timeout = absl::Seconds(10);  // of the handshake
  absl::Duration ping_interval = absl::Seconds(20);
  size_t max_message_bytes = 16u << 20;  // a longer one ends the connection with 1009
  size_t max_unread_bytes = 1u << 20;    // then the socket is not read until Read() is called
  size_t max_refusal_bytes = 64 * 1024;  // of the body of a refused handshake
};

class WebSocket {
 public:
  explicit WebSocket(HttpClient& client, WebSocketOptions options = {});
  ~WebSocket();  // drops the connection without a close frame
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Once. `url` is ws, wss, http or https. A peer that answers with another status than 101 is
  // UPSTREAM_PROTOCOL and refusal() has its answer.
  Task<absl::Status> Connect(std::string url, HttpHeaders headers = {});

  // The peer's answer to a refused handshake, its body cut at max_refusal_bytes.
  const std::optional<HttpResponse>& refusal() const;

  // The next message, swapped into *message. False: the connection ended (see end()) or the task
  // was cancelled.
  Task<bool> Read(WebSocketMessage* message);

  // Sends one message and returns when the kernel has it; the bytes may go as soon as it returns.
  // False: the connection is over or closing, or the task was cancelled (the message may be sent).
  Task<bool> Write(WebSocketKind kind, std::string_view bytes);

  // Sends a close frame and returns when the kernel has it; Read() then yields what still comes up
  // to the peer's close frame. A code that must not travel (1005, 1006, 1015, unassigned) makes it
  // a frame without one; a reason is cut at 123 bytes. False as for Write().
  Task<bool> Close(uint16_t code, std::string_view reason);

  // For a peer that does not read: what it was sent and has not got is thrown away, and it learns
  // at once that the connection is over, when this goes.
  void ResetWhenDropped();

  const WebSocketEnd& end() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge
