// SPDX-License-Identifier: Apache-2.0
#include "tests/local/execd/replay/raw_client.h"

#include <algorithm>
#include <cstdlib>

#include "absl/time/clock.h"

namespace bridge::local::execd {
namespace {

constexpr absl::Duration kReadTimeout = absl::Seconds(60);

}  // namespace

std::string RawAnswer::Body() const {
  std::string out;
  for (const std::string& chunk : chunks) out += chunk;
  return out;
}

std::string RequestHead(std::string_view method, std::string_view path,
                        const http::Headers& headers) {
  std::string out(method);
  out.append(" ").append(path).append(" HTTP/1.1\r\n");
  for (const auto& [name, value] : headers) out += name + ": " + value + "\r\n";
  return out + "\r\n";
}

RawClient::RawClient(int port) {
  const auto fd = http::ConnectTcp("127.0.0.1", port, absl::Seconds(10));
  if (!fd.ok()) abort();
  socket_ = std::make_unique<http::Socket>(*fd);
}

bool RawClient::Send(std::string_view bytes) {
  sent_at_ = absl::Now();
  return socket_->Write(bytes, kReadTimeout).ok();
}

bool RawClient::Fill() {
  char bytes[65536];
  const auto n = socket_->Read(bytes, sizeof(bytes), kReadTimeout);
  if (!n.ok() || *n == 0) return false;
  buffer_.append(bytes, *n);
  return true;
}

bool RawClient::ReadLine(std::string* line) {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return false;
  }
  *line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return true;
}

RawAnswer RawClient::Read(bool head_only, const std::function<bool(const RawAnswer&)>& enough) {
  RawAnswer answer;
  std::string line;
  while (true) {
    if (!ReadLine(&line) || line.size() < 12) return answer;
    answer.status = std::atoi(line.substr(9, 3).c_str());
    answer.reason = line.size() > 13 ? line.substr(13) : "";
    answer.headers = {};
    while (ReadLine(&line) && !line.empty()) {
      const size_t colon = line.find(": ");
      answer.headers.Add(line.substr(0, colon), line.substr(colon + 2));
    }
    if (answer.status != 100) break;
    answer.continued = true;
  }
  const bool bodiless = head_only || answer.status < 200 || answer.status == 304;
  answer.chunked = answer.headers.HasToken("Transfer-Encoding", "chunked");
  const auto length = answer.headers.Get("Content-Length");
  if (bodiless) {
    answer.complete = true;
  } else if (answer.chunked) {
    ReadChunked(&answer, enough);
  } else {
    ReadSized(&answer, length ? std::atoll(std::string(*length).c_str()) : -1);
  }
  answer.end_ms = absl::ToDoubleMilliseconds(absl::Now() - sent_at_);
  return answer;
}

void RawClient::ReadChunked(RawAnswer* answer,
                            const std::function<bool(const RawAnswer&)>& enough) {
  std::string line;
  while (ReadLine(&line)) {
    const size_t size = std::strtoull(line.c_str(), nullptr, 16);
    while (buffer_.size() < size + 2) {
      if (!Fill()) return;
    }
    if (size == 0) {
      answer->complete = buffer_.starts_with("\r\n");
      buffer_.erase(0, 2);
      return;
    }
    answer->chunks.push_back(buffer_.substr(0, size));
    answer->chunk_ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - sent_at_));
    buffer_.erase(0, size + 2);
    if (enough && enough(*answer)) return;
  }
}

void RawClient::ReadSized(RawAnswer* answer, int64_t length) {
  while (length < 0 || static_cast<int64_t>(buffer_.size()) < length) {
    if (!Fill()) break;
  }
  const size_t take =
      length < 0 ? buffer_.size() : std::min(buffer_.size(), static_cast<size_t>(length));
  answer->complete = length < 0 || static_cast<int64_t>(take) == length;
  if (take > 0) answer->chunks.push_back(buffer_.substr(0, take));
  buffer_.erase(0, take);
}

bool RawClient::Ended(absl::Duration timeout) {
  char byte;
  const auto n = socket_->Read(&byte, 1, timeout);
  return n.ok() && *n == 0;
}

}  // namespace bridge::local::execd
