// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/websocket_handshake.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "bridge/net/curl_status.h"

namespace bridge {
namespace {

constexpr size_t kMaxHeadBytes = 64 * 1024;
constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455, 1.3

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// Is `token` one of a comma-separated list, without case?
bool HasToken(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(Absl(list.substr(0, comma))),
                               Absl(token))) {
      return true;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Sends everything; false when the connection broke or the task was cancelled.
Task<bool> SendAll(Connection& connection, FdWatch& watch, std::string bytes) {
  std::string_view left = bytes;
  while (!left.empty()) {
    size_t n = 0;
    const Connection::Io io = connection.TryWrite(left, &n);
    if (io == Connection::Io::kBroken) co_return false;
    left.remove_prefix(n);
    if (io != Connection::Io::kWouldBlock) continue;
    const bool writable = co_await watch.Writable();
    if (!writable) co_return false;
  }
  co_return true;
}

// Appends what is there next; false at the end, when it broke, or when cancelled.
Task<bool> ReceiveMore(Connection& connection, FdWatch& watch, std::string* buffer) {
  char bytes[4096];
  while (true) {
    size_t n = 0;
    const Connection::Io io = connection.TryRead(bytes, sizeof(bytes), &n);
    if (io == Connection::Io::kOk) {
      buffer->append(bytes, n);
      co_return true;
    }
    if (io != Connection::Io::kWouldBlock) co_return false;
    const bool readable = co_await watch.Readable();
    if (!readable) co_return false;
  }
}

// Reads the body of a refusal as far as it comes, into refusal->body.
Task<void> ReadRefusal(Connection& connection, FdWatch& watch, std::string coded, size_t limit,
                       HttpResponse* refusal) {
  size_t wanted = limit;
  const bool chunked = HasToken(refusal->headers.Get("Transfer-Encoding").value_or(""), "chunked");
  if (const auto length = refusal->headers.Get("Content-Length"); length && !chunked) {
    uint64_t announced = 0;
    (void)absl::SimpleAtoi(Absl(*length), &announced);  // 0 when it makes no sense
    wanted = static_cast<size_t>(std::min<uint64_t>(announced, limit));
  }
  bool more = true;
  while (more) {
    bool complete = false;
    refusal->body = chunked ? DecodeChunks(coded, &complete) : coded;
    if (refusal->body.size() > wanted) refusal->body.resize(wanted);
    if (complete || refusal->body.size() >= wanted || coded.size() > 2 * limit) break;
    more = co_await ReceiveMore(connection, watch, &coded);
  }
}

}  // namespace

std::string MakeWebSocketKey() {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) std::abort();  // no randomness: nothing is safe
  return absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

std::string WebSocketAccept(std::string_view key) {
  const std::string text = std::string(key) + std::string(kGuid);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr) != 1) std::abort();
  return absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string UpgradeRequest(const UrlParts& url, const HttpHeaders& headers, std::string_view key) {
  std::string request = fmt::format("GET {} HTTP/1.1\r\n", url.target);
  if (!headers.Has("Host")) {
    request += url.default_port ? fmt::format("Host: {}\r\n", url.host)
                                : fmt::format("Host: {}:{}\r\n", url.host, url.port);
  }
  request += fmt::format(
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: {}\r\n",
      key);
  for (const HttpHeaders::Field& field : headers) {
    request += fmt::format("{}: {}\r\n", field.name, field.value);
  }
  return request + "\r\n";
}

std::optional<HttpHead> ParseResponseHead(std::string_view text) {
  HttpHead head;
  const size_t line_end = text.find("\r\n");
  const std::string_view status_line = text.substr(0, line_end);
  if (status_line.substr(0, 7) != "HTTP/1." || status_line.size() < 12 || status_line[8] != ' ') {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(Absl(status_line.substr(9, 3)), &head.status) || head.status < 100) {
    return std::nullopt;
  }
  while (text.find("\r\n") != std::string_view::npos) {
    text.remove_prefix(text.find("\r\n") + 2);
    const std::string_view line = text.substr(0, text.find("\r\n"));
    if (line.empty()) break;
    auto field = ParseHeaderLine(line);
    if (!field) return std::nullopt;
    head.headers.Add(field->name, field->value);
  }
  return head;
}

absl::Status CheckUpgrade(std::string_view url, const HttpHead& head, std::string_view key) {
  if (head.status != 101) {
    return WithMetadata(
        ProtocolStatus(url, fmt::format("refused the WebSocket with HTTP {}", head.status)),
        "upstream_status", std::to_string(head.status));
  }
  if (!HasToken(head.headers.Get("Upgrade").value_or(""), "websocket") ||
      !HasToken(head.headers.Get("Connection").value_or(""), "upgrade")) {
    return ProtocolStatus(url, "switched to another protocol than WebSocket");
  }
  if (head.headers.Get("Sec-WebSocket-Accept") != WebSocketAccept(key)) {
    return ProtocolStatus(url,
                          "answered the WebSocket handshake with a wrong Sec-WebSocket-Accept");
  }
  if (head.headers.Has("Sec-WebSocket-Extensions")) {
    return ProtocolStatus(url, "uses a WebSocket extension that was not asked for");
  }
  return absl::OkStatus();
}

std::string DecodeChunks(std::string_view coded, bool* complete) {
  std::string body;
  *complete = false;
  while (true) {
    const size_t line_end = coded.find("\r\n");
    if (line_end == std::string_view::npos) return body;
    uint64_t size = 0;
    const std::string_view digits = coded.substr(0, std::min(line_end, coded.find(';')));
    *complete = !absl::SimpleHexAtoi(Absl(digits), &size) || size == 0;
    if (*complete) return body;
    coded.remove_prefix(line_end + 2);
    body.append(coded.substr(0, size));
    if (coded.size() < size || coded.size() - size < 2) return body;
    coded.remove_prefix(size + 2);
  }
}

Task<void> Handshake(EventLoop& loop, Connection& connection, std::string url, HttpHeaders headers,
                     size_t max_refusal_bytes, HandshakeResult* result) {
  const std::string key = MakeWebSocketKey();
  const std::optional<UrlParts> parts = ParseUrl(url);
  FdWatch watch(loop, connection.fd());
  std::string buffer;
  size_t head_end = std::string::npos;
  result->status = CancelledStatus(url);
  bool alive = co_await SendAll(connection, watch, UpgradeRequest(*parts, headers, key));
  while (alive && head_end == std::string::npos && buffer.size() <= kMaxHeadBytes) {
    alive = co_await ReceiveMore(connection, watch, &buffer);
    head_end = buffer.find("\r\n\r\n");
  }
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return;
  if (head_end == std::string::npos) {
    result->status = alive ? ProtocolStatus(url, "sent a head that is too large")
                           : LostStatus(url, HttpPhase::kAnswer);
    co_return;
  }
  const std::optional<HttpHead> head = ParseResponseHead(buffer.substr(0, head_end));
  buffer.erase(0, head_end + 4);
  if (!head) {
    result->status = ProtocolStatus(url, "does not speak HTTP");
    co_return;
  }
  result->status = CheckUpgrade(url, *head, key);
  if (result->status.ok()) {
    result->early = std::move(buffer);
  } else if (head->status != 101) {
    result->refusal =
        HttpResponse{.status = head->status, .headers = head->headers, .host = HostAndPort(url)};
    co_await ReadRefusal(connection, watch, std::move(buffer), max_refusal_bytes,
                         &*result->refusal);
  }
}

}  // namespace bridge
