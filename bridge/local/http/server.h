// SPDX-License-Identifier: Apache-2.0
//
// local/http/server.h — an HTTP/1.1 server, one thread a connection.
//
// Threads have small stacks, so thousands of idle streams cost little more than their sockets.
// Start listens and returns; Stop (and the destructor) ends the listener and every connection, sets
// the stop token that handlers see, and joins all threads: it waits as long as a handler needs to
// notice. No library beyond Abseil and the C++ runtime is linked, so that it can be static.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::http {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;        // 0 = any free one
  int listen_fd = -1;  // >= 0: an inherited listening socket instead of host:port
  size_t max_head_bytes = 64 * 1024;
  absl::Duration idle_timeout = absl::InfiniteDuration();  // between requests on a connection
  size_t stack_bytes = 256 * 1024;
  size_t max_connections = 20000;  // more are closed at once

  // Names of the headers that the server itself adds are in lower case (uvicorn) or not (Go).
  bool lower_case_headers = false;
  bool date_header = true;
  // The time of the Date header, seconds since the epoch; null = the real time.
  std::function<long long()> unix_time = nullptr;
  // The answer to input that is no HTTP request (400) or whose head is too long (431).
  Response bad_request = {400, {{"Content-Type", "text/plain; charset=utf-8"}}, "400 Bad Request"};

  // Called for each request before its handler; every non-null hook takes part, in this order.
  std::vector<HookFactory> hooks = {};
};

class Server {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, Handler handler);
  ~Server();

  int port() const;
  const std::string& host() const;
  std::string url() const;  // "http://127.0.0.1:40404"
  void Stop();
  // Connections that are open now.
  size_t connections() const;

  class Impl;

 private:
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge::local::http
