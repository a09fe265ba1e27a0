// SPDX-License-Identifier: Apache-2.0
//
// local/http/client.h — one HTTP/1.1 exchange as a client: what a reverse proxy needs.
//
// Blocking; one thread, except that Abort() may come from any. A connection serves one exchange.
// Errors: UNAVAILABLE (refused, broken, ended early), DEADLINE_EXCEEDED, INVALID_ARGUMENT (the peer
// does not speak HTTP).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/local/http/parser.h"
#include "bridge/local/http/socket.h"
#include "bridge/local/http/types.h"
#include "bridge/local/http/websocket.h"

namespace bridge::local::http {

class ClientExchange {
 public:
  static absl::StatusOr<std::unique_ptr<ClientExchange>> Connect(const std::string& host, int port,
                                                                 absl::Duration timeout);
  // Sends the head exactly as given: no header is added.
  absl::Status SendHead(std::string_view method, std::string_view target, const Headers& headers);
  absl::Status SendBody(std::string_view bytes, bool chunked);  // chunked: as one chunk
  absl::Status EndBody(bool chunked);

  // Skips 1xx answers other than 101. `timeout` is between bytes; after DEADLINE_EXCEEDED both may
  // be called again, nothing is lost.
  absl::StatusOr<Parser::Head> ReadHead(absl::Duration timeout);
  // Bytes of the body, 0 at its proper end.
  absl::StatusOr<size_t> ReadBody(char* to, size_t size, absl::Duration timeout);
  bool chunked() const { return parser_->chunked(); }

  // After a 101: the WebSocket over this connection. Lives no longer than this object.
  std::unique_ptr<WebSocket> TakeWebSocket(WebSocket::Options options);

  // What was received behind the head, for whoever goes on with socket() himself.
  std::string TakePending() { return std::exchange(buffer_, {}); }
  Socket& socket() { return *socket_; }
  void Abort() { socket_->Shutdown(); }

 private:
  explicit ClientExchange(std::unique_ptr<Socket> socket) : socket_(std::move(socket)) {}

  std::unique_ptr<Socket> socket_;
  std::string method_;
  std::string buffer_;  // received and not yet parsed
  std::unique_ptr<Parser> parser_;
};

// One whole exchange, for tests and small calls. `headers` without Host and Content-Length.
absl::StatusOr<Response> Fetch(const std::string& host, int port, std::string_view method,
                               std::string_view target, Headers headers = {},
                               std::string_view body = "",
                               absl::Duration timeout = absl::Seconds(30));

}  // namespace bridge::local::http
