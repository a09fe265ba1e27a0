// SPDX-License-Identifier: Apache-2.0
//
// local/http/connection.h — one accepted connection: reads requests, runs the handler, keeps alive.
// Private to the server. Run() is the connection's thread; Shutdown() and finished() from any.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/local/http/exchange.h"
#include "bridge/local/http/parser.h"
#include "bridge/local/http/server.h"
#include "bridge/local/http/socket.h"

namespace bridge::local::http {

class Connection {
 public:
  // All but `fd`, which it takes, outlive the connection.
  Connection(int fd, std::string peer_host, int peer_port, const ServerOptions& options,
             const Handler& handler, std::stop_token stop);

  void Run();
  void Shutdown() { socket_.Shutdown(); }

  // ---- for Exchange
  Socket& socket() { return socket_; }
  const ServerOptions& options() const { return options_; }
  const std::stop_token& stop_token() const { return stop_; }
  Parser& parser() { return *parser_; }
  absl::StatusOr<size_t> ReadBody(char* to, size_t size);
  std::string TakePending();  // what was read and not parsed
  long long UnixTime() const;

 private:
  enum class Got { kRequest, kEnd, kMalformed, kTooLong };
  Got ReadHead();
  bool ServeOne();  // true = the connection may go on
  bool DrainBody();
  void Reject(int status);
  Request MakeRequest() const;

  Socket socket_;
  const std::string peer_host_;
  const int peer_port_;
  const ServerOptions& options_;
  const Handler& handler_;
  const std::stop_token stop_;
  std::unique_ptr<Parser> parser_;
  std::string buffer_;  // received and not yet parsed
};

}  // namespace bridge::local::http
