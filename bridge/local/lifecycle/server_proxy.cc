// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/server_proxy.h"

#include <algorithm>
#include <charconv>

#include "bridge/local/api/fields.h"
#include "bridge/local/lifecycle/forward.h"
#include "bridge/local/lifecycle/reply.h"

namespace bridge::local::lifecycle {
namespace {

using api::CodeFailure;

// Never passed on: they are about the caller and this server.
bool IsPrivate(std::string_view name) {
  for (const char* one :
       {"host", "authorization", "cookie", "open-sandbox-api-key", "opensandbox-secure-access",
        "opensandbox-access-renew", "forwarded", "x-real-ip", "expect", "content-length"}) {
    if (http::EqualsIgnoreCase(name, one)) return true;
  }
  return http::AsciiLower(name).starts_with("x-forwarded-") || IsHopByHop(name);
}

// An answer's headers in the order of the real server, which adds its own name first.
http::Response AnswerHead(const http::Parser::Head& head, const std::string& mount,
                          const std::string& prefix, http::Exchange& exchange) {
  http::Headers headers = {{"server", "uvicorn"}};
  for (const auto& [name, value] : head.headers) {
    if (IsHopByHop(name) || http::EqualsIgnoreCase(name, "server")) continue;
    const bool redirect = http::EqualsIgnoreCase(name, "location") && value.starts_with('/') &&
                          !value.starts_with("//");
    headers.Add(http::AsciiLower(name), redirect ? mount + prefix + value : value);
  }
  AddCommonHeaders(exchange, headers);
  return {head.status, std::move(headers), ""};
}

// {'code': '…', 'message': '…'}: the real server puts a Python dictionary into the close reason.
std::string PythonText(const Failure& failure) {
  std::string text = "{";
  for (const auto& [key, value] : failure.body.items()) {
    text += (text.size() > 1 ? ", '" : "'") + key + "': '" + value.get<std::string>() + "'";
  }
  return text + "}";
}

}  // namespace

std::string RebuildPath(std::string_view decoded) {
  // Dot segments are resolved, and the slashes in front become one.
  while (decoded.starts_with('/')) decoded.remove_prefix(1);
  std::vector<std::string> kept;
  std::string_view rest = decoded;
  bool more = true;
  while (more) {
    const size_t slash = rest.find('/');
    const std::string segment(rest.substr(0, slash));
    more = slash != std::string_view::npos;
    rest.remove_prefix(more ? slash + 1 : rest.size());
    if (segment == "." || segment == "..") {
      if (segment == ".." && !kept.empty()) kept.pop_back();
      if (!more) kept.emplace_back();
      continue;
    }
    kept.push_back(segment);
  }
  std::string path;
  for (const std::string& segment : kept) path += "/" + segment;
  if (path.empty()) path = "/";
  return http::PercentEncode(path, "/?%:@!$&'()*+,;=");
}

bool IsOpenProxyPath(std::string_view path) {
  if (path.find("..") != std::string_view::npos) return false;
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (!path.starts_with("/sandboxes/")) return false;
  path.remove_prefix(11);
  const size_t id_end = path.find('/');
  if (id_end == 0 || id_end == std::string_view::npos) return false;
  path.remove_prefix(id_end);
  if (!path.starts_with("/proxy/")) return false;
  path.remove_prefix(7);
  size_t digits = 0;
  while (digits < path.size() && path[digits] >= '0' && path[digits] <= '9') ++digits;
  return digits > 0 && (digits == path.size() || path[digits] == '/');
}

std::optional<Failure> ServerProxy::FindBackend(const http::Request& request,
                                                Backend* backend) const {
  api::ValidationErrors errors;
  const std::optional<int64_t> port =
      api::LaxInt(request.param("port"), {}, {"path", "port"}, errors);
  if (!port) return errors.ToFailure();
  if (*port < 1 || *port > 65535) {
    return CodeFailure(400, "DOCKER::INVALID_PORT", "Port must be between 1 and 65535.");
  }
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(request.param("sandbox_id"), &record)) return failure;
  if (record.ended) {
    return CodeFailure(500, "DOCKER::NETWORK_MODE_ENDPOINT_UNAVAILABLE",
                       "Container is running but has no assigned IP address.");
  }
  backend->port = *port == 44772 ? options_.execd_port(record) : static_cast<int>(*port);
  if (*port == 44772) backend->host = options_.execd_host;
  backend->name = backend->host + ":" + std::to_string(*port);
  return std::nullopt;
}

http::Headers ServerProxy::RequestHeaders(const http::Request& request,
                                          const Backend& backend) const {
  // What the real server's HTTP client sends by itself, where the caller does not say otherwise.
  http::Headers headers = {{"Host", backend.name}};
  for (const auto& [name, value] :
       {std::pair("Accept", "*/*"), std::pair("Accept-Encoding", "gzip, deflate"),
        std::pair("Connection", "keep-alive"), std::pair("User-Agent", "python-httpx/0.28.1")}) {
    const bool given = !http::EqualsIgnoreCase(name, "connection") && request.headers.Has(name);
    if (!given) headers.Add(name, value);
  }
  for (const auto& [name, value] : request.headers) {
    // Headers that "Connection" names are about that connection too.
    if (IsPrivate(name) || request.headers.HasToken("connection", name)) continue;
    headers.Add(http::AsciiLower(name), value);
  }
  const bool body = request.method != "GET";
  const auto length = request.headers.Get("content-length");
  if (body && length) headers.Add("content-length", *length);
  headers.Add("X-Forwarded-Proto", "http");
  headers.Add("X-Forwarded-Host", request.headers.Get("host").value_or(""));
  // The real server believes what a caller on the same machine says of itself.
  const auto claimed = request.headers.Get("x-forwarded-for");
  const bool local = request.peer_host.starts_with("127.") || request.peer_host == "::1";
  headers.Add("X-Forwarded-For", local && claimed ? *claimed : request.peer_host);
  if (options_.shared_cookie_jar) {
    const std::string cookies = CookiesOf(request.param("sandbox_id"));
    if (!cookies.empty()) headers.Add("Cookie", cookies);
  }
  return headers;
}

std::string ServerProxy::CookiesOf(const std::string& id) const {
  const std::lock_guard lock(mu_);
  const auto it = cookies_.find(id);
  if (it == cookies_.end()) return "";
  std::string text;
  for (const auto& [name, value] : it->second) {
    text += (text.empty() ? "" : "; ") + name + "=" + value;
  }
  return text;
}

void ServerProxy::KeepCookies(const std::string& id, const http::Headers& headers) {
  for (const auto& [header, text] : headers) {
    if (!http::EqualsIgnoreCase(header, "set-cookie")) continue;
    const std::string pair = text.substr(0, text.find(';'));
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) continue;
    const std::lock_guard lock(mu_);
    auto& jar = cookies_[id];
    const std::string name = pair.substr(0, equals);
    std::erase_if(jar, [&name](const auto& cookie) { return cookie.first == name; });
    jar.emplace_back(name, pair.substr(equals + 1));
  }
}

void ServerProxy::HandleHttp(http::Exchange& exchange, const std::string& mount) {
  const http::Request& request = exchange.request();
  Backend backend;
  if (auto failure = FindBackend(request, &backend)) return ReplyFailure(exchange, *failure);
  const std::string id = request.param("sandbox_id");
  const std::string prefix = "/sandboxes/" + id + "/proxy/" + request.param("port");
  ForwardPlan plan;
  plan.host = backend.host;
  plan.port = backend.port;
  plan.target = RebuildPath(request.param("full_path"));
  if (!request.raw_query.empty()) plan.target += "?" + request.raw_query;
  plan.headers = RequestHeaders(request, backend);
  plan.send_body = request.method != "GET";
  plan.idle_timeout = options_.backend_timeout;
  plan.end_broken_answers = true;  // what is cut off looks complete, as with the real one
  plan.head = [&](const http::Parser::Head& head) {
    if (options_.shared_cookie_jar) KeepCookies(id, head.headers);
    return AnswerHead(head, mount, prefix, exchange);
  };
  const std::string who = "the backend sandbox " + backend.name;
  switch (ForwardHttp(exchange, plan)) {
    case ForwardResult::kDone:
      return;
    case ForwardResult::kNoConnection:
      return ReplyFailure(exchange, CodeFailure(502, "BACKEND_CONNECTION_FAILED",
                                                "Could not connect to " + who +
                                                    ": All connection attempts failed"));
    case ForwardResult::kBrokenResponse:
      return ReplyFailure(
          exchange, CodeFailure(502, "BACKEND_RESPONSE_FAILED",
                                "The backend sandbox " + backend.name +
                                    " dropped the connection or sent an invalid response: Server "
                                    "disconnected without sending a response."));
    case ForwardResult::kTimeout:
      return ReplyFailure(exchange,
                          CodeFailure(504, "BACKEND_TIMEOUT", "Timed out waiting for " + who));
  }
}

void ServerProxy::HandleWebSocket(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  const http::Headers own = {{"server", "uvicorn"}};
  // The real server accepts first, and only then has bad news.
  const auto refuse = [&](uint16_t code, const std::string& reason) {
    auto websocket = exchange.AcceptWebSocket({.echo_reason = true}, own);
    if (!websocket.ok()) return;
    (void)(*websocket)->Close(code, reason);
    (void)(*websocket)->Read(absl::Seconds(5));
  };
  Backend backend;
  if (auto failure = FindBackend(request, &backend)) return refuse(1011, PythonText(*failure));
  WebSocketPlan plan;
  plan.host = backend.host;
  plan.port = backend.port;
  plan.target = RebuildPath(request.param("full_path"));
  if (!request.raw_query.empty()) plan.target += "?" + request.raw_query;
  plan.accept_headers = own;
  plan.broken_code = 1011;
  plan.headers.Add("Host", backend.name);
  for (const auto& [name, value] : request.headers) {
    if (IsPrivate(name)) continue;
    const bool handshake = http::AsciiLower(name).starts_with("sec-websocket-") &&
                           !http::EqualsIgnoreCase(name, "sec-websocket-protocol");
    if (!handshake) plan.headers.Add(http::AsciiLower(name), value);
  }
  const WebSocketResult result = ForwardWebSocket(exchange, plan);
  if (result.result != ForwardResult::kDone) return refuse(1011, "");
  if (result.refusal) refuse(1008, "");
}

}  // namespace bridge::local::lifecycle
