// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/server_proxy.h — the route …/sandboxes/{id}/proxy/{port}/… with the real server's
// habits: which headers pass, how the path is rebuilt, what failures look like. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bridge/local/http/exchange.h"
#include "bridge/local/lifecycle/record.h"
#include "bridge/local/lifecycle/sandboxes.h"

namespace bridge::local::lifecycle {

struct ServerProxyOptions {
  // Cookies of one caller's answers are sent with the requests of all others, as the real server
  // 1.1.1 does. Off unless it is that which is to be tested.
  bool shared_cookie_jar = false;
  absl::Duration backend_timeout = absl::Seconds(180);  // between bytes
  std::string execd_host = "127.0.0.1";
  // Where the daemon of a sandbox is reached (a test may be in between).
  std::function<int(const SandboxRecord&)> execd_port = [](const SandboxRecord& record) {
    return record.execd_port;
  };
};

class ServerProxy {
 public:
  ServerProxy(const Sandboxes& sandboxes, ServerProxyOptions options)
      : sandboxes_(sandboxes), options_(std::move(options)) {}

  // Path parameters: sandbox_id, port, and full_path (absent on the route without a path). `mount`
  // is "/v1" or "".
  void HandleHttp(http::Exchange& exchange, const std::string& mount);
  void HandleWebSocket(http::Exchange& exchange);

 private:
  struct Backend {
    std::string host = "127.0.0.1";
    int port = 0;      // where it really is
    std::string name;  // "127.0.0.1:8000", as the application inside knows itself
  };
  std::optional<Failure> FindBackend(const http::Request& request, Backend* backend) const;
  http::Headers RequestHeaders(const http::Request& request, const Backend& backend) const;
  std::string CookiesOf(const std::string& id) const;
  void KeepCookies(const std::string& id, const http::Headers& headers);

  const Sandboxes& sandboxes_;
  const ServerProxyOptions options_;
  mutable std::mutex mu_;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> cookies_;  // by id
};

// The path as the real proxy sends it on: decoded, and escaped again only where it must be.
std::string RebuildPath(std::string_view decoded);
// …/sandboxes/ID/proxy/DIGITS[/…] without "..": the paths that need no key.
bool IsOpenProxyPath(std::string_view path);

}  // namespace bridge::local::lifecycle
