// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/client.h"

#include <array>
#include <cstdio>
#include <utility>

namespace bridge::local::http {
namespace {

constexpr size_t kMaxHead = 256 * 1024;

std::string ChunkOf(std::string_view bytes) {
  char size[24];
  snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientExchange>> ClientExchange::Connect(const std::string& host,
                                                                        int port,
                                                                        absl::Duration timeout) {
  const absl::StatusOr<int> fd = ConnectTcp(host, port, timeout);
  if (!fd.ok()) return fd.status();
  return std::unique_ptr<ClientExchange>(new ClientExchange(std::make_unique<Socket>(*fd)));
}

absl::Status ClientExchange::SendHead(std::string_view method, std::string_view target,
                                      const Headers& headers) {
  method_ = std::string(method);
  std::string head = method_ + " " + std::string(target) + " HTTP/1.1\r\n";
  for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
  return socket_->Write(head + "\r\n");
}

absl::Status ClientExchange::SendBody(std::string_view bytes, bool chunked) {
  if (bytes.empty()) return absl::OkStatus();
  return socket_->Write(chunked ? ChunkOf(bytes) : std::string(bytes));
}

absl::Status ClientExchange::EndBody(bool chunked) {
  return chunked ? socket_->Write("0\r\n\r\n") : absl::OkStatus();
}

absl::StatusOr<Parser::Head> ClientExchange::ReadHead(absl::Duration timeout) {
  const auto fresh = [this] {
    parser_ = std::make_unique<Parser>(Parser::Kind::kResponse, kMaxHead, method_ == "HEAD");
  };
  if (parser_ == nullptr) fresh();
  while (true) {
    size_t written = 0;
    const absl::StatusOr<size_t> used = parser_->Feed(buffer_, nullptr, 0, &written);
    if (!used.ok()) return used.status();
    buffer_.erase(0, *used);
    if (parser_->head_done()) {
      const int status = parser_->head().status;
      if (status / 100 != 1 || status == 101) return parser_->head();
      fresh();
      continue;
    }
    std::array<char, 16384> bytes;
    const absl::StatusOr<size_t> n = socket_->Read(bytes.data(), bytes.size(), timeout);
    if (!n.ok()) return n.status();
    if (*n == 0) return absl::UnavailableError("the connection ended before an answer");
    buffer_.append(bytes.data(), *n);
  }
}

absl::StatusOr<size_t> ClientExchange::ReadBody(char* to, size_t size, absl::Duration timeout) {
  while (true) {
    size_t written = 0;
    const absl::StatusOr<size_t> used = parser_->Feed(buffer_, to, size, &written);
    if (!used.ok()) return used.status();
    buffer_.erase(0, *used);
    if (written > 0) return written;
    if (parser_->done()) return 0;
    std::array<char, 16384> bytes;
    const absl::StatusOr<size_t> n = socket_->Read(bytes.data(), bytes.size(), timeout);
    if (!n.ok()) return n.status();
    if (*n == 0) {
      const absl::Status ended = parser_->FeedEof();
      if (!ended.ok()) return ended;
      return 0;
    }
    buffer_.append(bytes.data(), *n);
  }
}

std::unique_ptr<WebSocket> ClientExchange::TakeWebSocket(WebSocket::Options options) {
  options.client = true;
  return std::make_unique<WebSocket>(*socket_, std::exchange(buffer_, {}), options);
}

absl::StatusOr<Response> Fetch(const std::string& host, int port, std::string_view method,
                               std::string_view target, Headers headers, std::string_view body,
                               absl::Duration timeout) {
  absl::StatusOr<std::unique_ptr<ClientExchange>> client =
      ClientExchange::Connect(host, port, timeout);
  if (!client.ok()) return client.status();
  headers.Add("Host", host + ":" + std::to_string(port));
  headers.Add("Connection", "close");
  if (!body.empty() || (method != "GET" && method != "HEAD")) {
    headers.Add("Content-Length", std::to_string(body.size()));
  }
  // A server may answer and close before it has read all of the body: the answer counts.
  (void)(*client)->SendHead(method, target, headers);
  (void)(*client)->SendBody(body, false);
  absl::StatusOr<Parser::Head> head = (*client)->ReadHead(timeout);
  if (!head.ok()) return head.status();
  Response response{head->status, std::move(head->headers), "", std::move(head->reason)};
  std::array<char, 65536> bytes;
  while (true) {
    const absl::StatusOr<size_t> n = (*client)->ReadBody(bytes.data(), bytes.size(), timeout);
    if (!n.ok()) return n.status();
    if (*n == 0) return response;
    response.body.append(bytes.data(), *n);
  }
}

}  // namespace bridge::local::http
