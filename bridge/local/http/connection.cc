// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/connection.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

namespace bridge::local::http {
namespace {

constexpr size_t kReadSize = 16 * 1024;
// Of a request's body that no handler read, this much is read and thrown away to keep the
// connection; a longer rest ends it.
constexpr size_t kMaxDrain = 256 * 1024;

}  // namespace

Connection::Connection(int fd, std::string peer_host, int peer_port, const ServerOptions& options,
                       const Handler& handler, std::stop_token stop)
    : socket_(fd),
      peer_host_(std::move(peer_host)),
      peer_port_(peer_port),
      options_(options),
      handler_(handler),
      stop_(std::move(stop)) {}

void Connection::Run() {
  while (!stop_.stop_requested() && ServeOne()) {
  }
}

Connection::Got Connection::ReadHead() {
  parser_ = std::make_unique<Parser>(Parser::Kind::kRequest, options_.max_head_bytes);
  while (true) {
    if (!buffer_.empty()) {
      size_t written = 0;
      const absl::StatusOr<size_t> used = parser_->Feed(buffer_, nullptr, 0, &written);
      if (absl::IsResourceExhausted(used.status())) return Got::kTooLong;
      if (!used.ok()) return Got::kMalformed;
      buffer_.erase(0, *used);
      if (parser_->head_done()) return Got::kRequest;
      if (buffer_.size() > options_.max_head_bytes) return Got::kTooLong;
    }
    std::array<char, kReadSize> bytes;
    const absl::StatusOr<size_t> n =
        socket_.Read(bytes.data(), bytes.size(), options_.idle_timeout);
    if (!n.ok() || *n == 0) return Got::kEnd;
    buffer_.append(bytes.data(), *n);
  }
}

absl::StatusOr<size_t> Connection::ReadBody(char* to, size_t size) {
  while (true) {
    size_t written = 0;
    const absl::StatusOr<size_t> used = parser_->Feed(buffer_, to, size, &written);
    if (!used.ok()) return used.status();
    buffer_.erase(0, *used);
    if (written > 0) return written;
    if (parser_->done()) return 0;
    std::array<char, kReadSize> bytes;
    const absl::StatusOr<size_t> n = socket_.Read(bytes.data(), bytes.size());
    if (!n.ok()) return n.status();
    if (*n == 0) return absl::UnavailableError("the request ended early");
    buffer_.append(bytes.data(), *n);
  }
}

std::string Connection::TakePending() { return std::exchange(buffer_, {}); }

long long Connection::UnixTime() const {
  return options_.unix_time ? options_.unix_time() : time(nullptr);
}

Request Connection::MakeRequest() const {
  const Parser::Head& head = parser_->head();
  Request request;
  request.method = head.method;
  request.target = head.target;
  request.minor_version = head.minor_version;
  request.headers = head.headers;
  request.peer_host = peer_host_;
  request.peer = peer_host_ + ":" + std::to_string(peer_port_);
  request.SplitTarget();
  return request;
}

bool Connection::ServeOne() {
  switch (ReadHead()) {
    case Got::kEnd:
      return false;
    case Got::kMalformed:
      Reject(400);
      return false;
    case Got::kTooLong:
      Reject(431);
      return false;
    case Got::kRequest:
      break;
  }
  Request request = MakeRequest();
  std::vector<std::unique_ptr<Hook>> hooks;
  for (const HookFactory& make : options_.hooks) {
    if (std::unique_ptr<Hook> hook = make(request)) hooks.push_back(std::move(hook));
  }
  Exchange exchange(*this, std::move(request), std::move(hooks));
  exchange.Run(handler_);
  if (exchange.hijacked()) return false;
  if (!exchange.finished()) return false;
  if (exchange.close_after() || !DrainBody()) {
    socket_.CloseGently();
    return false;
  }
  return true;
}

bool Connection::DrainBody() {
  if (parser_->done()) return true;
  std::array<char, kReadSize> sink;
  size_t drained = 0;
  while (drained < kMaxDrain && !socket_.was_shut_down()) {
    const absl::StatusOr<size_t> n = ReadBody(sink.data(), sink.size());
    if (!n.ok()) return false;
    if (*n == 0) return true;
    drained += *n;
  }
  return false;
}

void Connection::Reject(int status) {
  Response response = options_.bad_request;
  if (status != response.status) {
    response.status = status;
    response.body = std::to_string(status) + " " + std::string(ReasonPhrase(status));
  }
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     std::string(ReasonPhrase(response.status)) + "\r\n";
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  const bool lower = options_.lower_case_headers;
  text += std::string(lower ? "connection" : "Connection") + ": close\r\n\r\n" + response.body;
  if (socket_.Write(text).ok()) socket_.CloseGently();
}

}  // namespace bridge::local::http
