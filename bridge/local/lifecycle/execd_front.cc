// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/execd_front.h"

#include <utility>

#include "bridge/local/lifecycle/forward.h"

namespace bridge::local::lifecycle {
namespace {

// All that the client sent, but for what is about the framing of its body.
http::Headers PassedHeaders(const http::Request& request, bool handshake) {
  http::Headers headers;
  for (const auto& [name, value] : request.headers) {
    if (http::EqualsIgnoreCase(name, "transfer-encoding") ||
        http::EqualsIgnoreCase(name, "expect")) {
      continue;
    }
    const bool of_handshake = http::EqualsIgnoreCase(name, "connection") ||
                              http::EqualsIgnoreCase(name, "upgrade") ||
                              (http::AsciiLower(name).starts_with("sec-websocket-") &&
                               !http::EqualsIgnoreCase(name, "sec-websocket-protocol"));
    if (!handshake || !of_handshake) headers.Add(name, value);
  }
  return headers;
}

http::Response PassedHead(const http::Parser::Head& head) {
  http::Response response{head.status, {}, "", head.reason};
  for (const auto& [name, value] : head.headers) {
    if (!http::EqualsIgnoreCase(name, "transfer-encoding")) response.headers.Add(name, value);
  }
  return response;
}

void Pass(http::Exchange& exchange, const std::string& host, int port) {
  const http::Request& request = exchange.request();
  if (exchange.IsWebSocket()) {
    WebSocketPlan plan;
    plan.host = host;
    plan.port = port;
    plan.target = request.target;
    plan.headers = PassedHeaders(request, /*handshake=*/true);
    const WebSocketResult result = ForwardWebSocket(exchange, plan);
    if (result.refusal) {
      http::Response refusal = PassedHead({.status = result.refusal->status,
                                           .reason = result.refusal->reason,
                                           .headers = result.refusal->headers});
      refusal.body = result.refusal->body;
      (void)exchange.Respond(std::move(refusal));
    } else if (result.result != ForwardResult::kDone) {
      exchange.Reset();
    }
    return;
  }
  ForwardPlan plan;
  plan.host = host;
  plan.port = port;
  plan.target = request.target;
  plan.headers = PassedHeaders(request, /*handshake=*/false);
  plan.head = PassedHead;
  // As a closed port looks, as far as a server that has accepted can make it look so.
  if (ForwardHttp(exchange, plan) != ForwardResult::kDone) exchange.Reset();
}

}  // namespace

int ExecdFronts::PortOf(const SandboxRecord& record) {
  const std::lock_guard lock(mu_);
  const auto it = fronts_.find(record.id);
  if (it != fronts_.end()) return it->second->port();
  http::ServerOptions options;
  options.host = host_;
  options.date_header = false;  // the daemon's own is passed on
  options.hooks = hooks_;
  absl::StatusOr<std::unique_ptr<http::Server>> server =
      http::Server::Start(options, [host = host_, port = record.execd_port](
                                       http::Exchange& exchange) { Pass(exchange, host, port); });
  if (!server.ok()) return record.execd_port;
  const int port = (*server)->port();
  fronts_[record.id] = *std::move(server);
  return port;
}

void ExecdFronts::Drop(const std::string& id) {
  std::unique_ptr<http::Server> front;
  {
    const std::lock_guard lock(mu_);
    const auto it = fronts_.find(id);
    if (it == fronts_.end()) return;
    front = std::move(it->second);
    fronts_.erase(it);
  }
  // Its connections end, as the daemon's did, outside of the lock.
}

}  // namespace bridge::local::lifecycle
