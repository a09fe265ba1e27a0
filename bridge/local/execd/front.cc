// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/front.h"

#include <algorithm>

#include "bridge/local/execd/reply.h"

namespace bridge::local::execd {
namespace {

constexpr char kTokenHeader[] = "X-EXECD-ACCESS-TOKEN";

constexpr std::string_view kHostPunctuation = "!$%&'()*+,-.:;=[]_~";

bool IsHost(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kHostPunctuation.find(c) != std::string_view::npos;
  });
}

// Go's server ends the connection over these without a Date or a length.
void RejectRequest(http::Exchange& exchange, std::string_view reason) {
  std::string pending;
  const std::string text = "400 Bad Request: " + std::string(reason);
  (void)exchange.Hijack(&pending).Write("HTTP/1.1 " + text +
                                        "\r\nContent-Type: text/plain; charset=utf-8\r\n"
                                        "Connection: close\r\n\r\n" +
                                        text);
  exchange.socket().CloseGently();
}

bool CheckHost(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  const auto host = request.headers.Get("Host");
  if (!host) {
    if (request.minor_version == 0) return true;
    RejectRequest(exchange, "missing required Host header");
    return false;
  }
  if (IsHost(*host)) return true;
  RejectRequest(exchange, "malformed Host header");
  return false;
}

void EscapeHtml(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
}

// "/x/" where only "/x" is a route of this method.
bool RedirectSlash(http::Exchange& exchange, const http::Router& router) {
  using Result = http::Router::Match::Result;
  const http::Request& request = exchange.request();
  if (request.path.size() < 2 || request.path.back() != '/') return false;
  if (router.Find(request.method, request.path).result == Result::kFound) return false;
  const std::string bare = request.path.substr(0, request.path.size() - 1);
  if (router.Find(request.method, bare).result != Result::kFound) return false;
  std::string location = request.raw_path.substr(0, request.raw_path.size() - 1);
  if (!request.raw_query.empty()) location += "?" + request.raw_query;
  http::Response response;
  response.status = request.method == "GET" ? 301 : 307;
  if (request.method == "GET") {
    response.headers.Add("Content-Type", "text/html; charset=utf-8");
    response.body = "<a href=\"";
    EscapeHtml(response.body, location);
    response.body += "\">Moved Permanently</a>.\n\n";
  }
  response.headers.Add("Location", location);
  (void)exchange.Respond(std::move(response));
  return true;
}

}  // namespace

bool Front::Handle(http::Exchange& exchange, const http::Router& router) const {
  const http::Request& request = exchange.request();
  if (!CheckHost(exchange)) return true;
  if (RedirectSlash(exchange, router)) return true;
  const bool open = access_token.empty() || (open_ping && request.path == "/ping");
  if (!open && request.headers.Get(kTokenHeader).value_or("") != access_token) {
    ReplyJson(exchange, 401,
              "{\"error\":\"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN\"}");
    return true;
  }
  const bool websocket = exchange.IsWebSocket();
  if (router.Find(request.method, request.path, websocket).result !=
      http::Router::Match::Result::kFound) {
    ReplyText(exchange, 404, "text/plain", "404 page not found");
    return true;
  }
  return false;
}

}  // namespace bridge::local::execd
