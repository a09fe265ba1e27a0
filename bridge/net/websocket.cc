// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/websocket.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/net/connection.h"
#include "bridge/net/curl_status.h"
#include "bridge/net/url.h"
#include "bridge/net/websocket_handshake.h"
#include "bridge/net/websocket_session.h"

namespace bridge {
namespace {

// The URL as curl wants it.
std::string HttpUrl(const std::string& url, const UrlParts& parts) {
  if (parts.scheme == "ws") return "http" + url.substr(2);
  if (parts.scheme == "wss") return "https" + url.substr(3);
  return url;
}

absl::Status CheckRequest(const std::string& url, const std::optional<UrlParts>& parts,
                          const HttpHeaders& headers) {
  const bool known = parts && (parts->scheme == "ws" || parts->scheme == "wss" ||
                               parts->scheme == "http" || parts->scheme == "https");
  if (!known || parts->host.empty()) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT, "no valid WebSocket URL");
  }
  if (!IsHeaderValue(url)) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                     "the WebSocket URL holds a control character");
  }
  for (const HttpHeaders::Field& field : headers) {
    if (!IsHeaderName(field.name) || !IsHeaderValue(field.value)) {
      return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                       "a header of the WebSocket holds a character that cannot travel");
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct WebSocket::Impl {
  Impl(HttpClient& http, WebSocketOptions opts) : client(http), options(opts), connection(http) {}

  HttpClient& client;
  const WebSocketOptions options;
  Connection connection;
  std::optional<HttpResponse> refusal;
  std::optional<WebSocketSession> session;  // after Connect()
};

WebSocket::WebSocket(HttpClient& client, WebSocketOptions options)
    : impl_(std::make_unique<Impl>(client, options)) {}

WebSocket::~WebSocket() = default;

Task<absl::Status> WebSocket::Connect(std::string url, HttpHeaders headers) {
  Impl& ws = *impl_;
  EventLoop& loop = ws.client.loop();
  const std::optional<UrlParts> parts = ParseUrl(url);
  absl::Status status = CheckRequest(url, parts, headers);
  if (!status.ok()) co_return status;
  url = HttpUrl(url, *parts);
  status = co_await ws.connection.Open(url, ws.options.connect_timeout);
  if (!status.ok()) co_return status;

  HandshakeResult result;
  auto handshake = [&] {
    return Handshake(loop, ws.connection, url, std::move(headers), ws.options.max_refusal_bytes,
                     &result);
  };
  const bool in_time = co_await RunWithin(loop, ws.options.answer_timeout, handshake);
  const bool cancelled = co_await Cancelled();
  if (!in_time && !cancelled && !result.refusal) {
    co_return TimeoutStatus(url, HttpPhase::kAnswer, "did not answer the WebSocket handshake",
                            ws.options.answer_timeout);
  }
  ws.refusal = std::move(result.refusal);
  if (result.status.ok()) {
    ws.session.emplace(ws.client, ws.connection, std::move(url), ws.options, result.early);
  }
  co_return result.status;
}

const std::optional<HttpResponse>& WebSocket::refusal() const { return impl_->refusal; }

Task<bool> WebSocket::Read(WebSocketMessage* message) {
  if (!impl_->session) co_return false;
  co_return co_await impl_->session->Read(message);
}

Task<bool> WebSocket::Write(WebSocketKind kind, std::string_view bytes) {
  if (!impl_->session) co_return false;
  co_return co_await impl_->session->Write(kind, bytes);
}

Task<bool> WebSocket::Close(uint16_t code, std::string_view reason) {
  if (!impl_->session) co_return false;
  co_return co_await impl_->session->Close(code, reason);
}

void WebSocket::ResetWhenDropped() { impl_->connection.ResetWhenClosed(); }

const WebSocketEnd& WebSocket::end() const {
  static const WebSocketEnd none;
  return impl_->session ? impl_->session->end() : none;
}

}  // namespace bridge
