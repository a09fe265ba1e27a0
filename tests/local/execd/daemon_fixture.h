// SPDX-License-Identifier: Apache-2.0
//
// A daemon in this process and calls to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "bridge/local/execd/daemon.h"
#include "bridge/local/http/client.h"

namespace bridge::local::execd {

constexpr absl::Duration kLong = absl::Seconds(20);

inline std::unique_ptr<Daemon> StartDaemon(DaemonOptions options = {}) {
  options.server.host = "127.0.0.1";
  options.server.port = 0;
  auto daemon = Daemon::Start(std::move(options));
  EXPECT_TRUE(daemon.ok()) << daemon.status();
  return *std::move(daemon);
}

class Caller {
 public:
  explicit Caller(const Daemon& daemon) : port_(daemon.port()) {}

  http::Response Call(std::string_view method, std::string_view target, std::string_view body = "",
                      http::Headers headers = {}) const {
    auto response =
        http::Fetch("127.0.0.1", port_, method, target, std::move(headers), body, kLong);
    EXPECT_TRUE(response.ok()) << method << " " << target << ": " << response.status();
    return response.ok() ? *std::move(response) : http::Response{0, {}, ""};
  }
  http::Response Get(std::string_view target, http::Headers headers = {}) const {
    return Call("GET", target, "", std::move(headers));
  }
  http::Response Post(std::string_view target, std::string_view body) const {
    return Call("POST", target, body);
  }
  int port() const { return port_; }

 private:
  const int port_;
};

// A WebSocket client.
class SocketClient {
 public:
  SocketClient(int port, const std::string& target) {
    auto connected = http::ClientExchange::Connect("127.0.0.1", port, kLong);
    EXPECT_TRUE(connected.ok());
    client_ = *std::move(connected);
    (void)client_->SendHead("GET", target,
                            {{"Host", "x"},
                             {"Upgrade", "websocket"},
                             {"Connection", "Upgrade"},
                             {"Sec-WebSocket-Key", http::WebSocketKey()},
                             {"Sec-WebSocket-Version", "13"}});
    const auto head = client_->ReadHead(kLong);
    EXPECT_TRUE(head.ok()) << head.status();
    if (head.ok()) status_ = head->status;
    if (status_ == 101) socket_ = client_->TakeWebSocket({});
  }

  int status() const { return status_; }
  http::WebSocket& socket() { return *socket_; }
  // The next message; empty when the connection has ended.
  std::string Next() {
    if (!socket_) return "no WebSocket but status " + std::to_string(status_);
    auto message = socket_->Read(kLong);
    return message.ok() ? message->data : "";
  }
  // Reads until what has come so far, put together, holds `text`; all of it.
  std::string Until(const std::string& text) {
    std::string all;
    while (socket_ && all.find(text) == std::string::npos) {
      auto message = socket_->Read(kLong);
      if (!message.ok()) return all + "<" + std::string(message.status().message()) + ">";
      all += message->data;
    }
    return all;
  }
  // "CODE REASON" of the peer's close frame, once everything before it was read.
  std::string Close() {
    while (socket_->Read(kLong).ok()) {
    }
    return std::to_string(socket_->close_code()) + " " + socket_->close_reason();
  }

 private:
  std::unique_ptr<http::ClientExchange> client_;
  std::unique_ptr<http::WebSocket> socket_;
  int status_ = 0;
};

}  // namespace bridge::local::execd
