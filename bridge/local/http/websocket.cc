// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/websocket.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <boost/uuid/detail/sha1.hpp>
#include <utility>

#include "absl/strings/escaping.h"

namespace bridge::local::http {
namespace {

template <size_t kSize>
std::array<uint8_t, kSize> RandomBytes() {
  std::array<uint8_t, kSize> bytes{};
  size_t done = 0;
  while (done < kSize) {
    const ssize_t n = getrandom(bytes.data() + done, kSize - done, 0);
    if (n > 0) done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

std::string WebSocketAccept(std::string_view key) {
  const std::string input = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  boost::uuids::detail::sha1 sha;
  sha.process_bytes(input.data(), input.size());
  unsigned int words[5];
  sha.get_digest(words);
  std::string digest;
  for (const unsigned int word : words) {
    for (int shift = 24; shift >= 0; shift -= 8) digest.push_back(static_cast<char>(word >> shift));
  }
  return absl::Base64Escape(digest);
}

std::string WebSocketKey() {
  const std::array<uint8_t, 16> bytes = RandomBytes<16>();
  return absl::Base64Escape({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

WebSocket::WebSocket(Socket& socket, std::string pending, Options options)
    : socket_(socket),
      options_(options),
      frames_(/*expect_mask=*/!options.client, options.max_message_bytes),
      pending_(std::move(pending)),
      next_ping_(absl::Now() + options.ping_interval),
      last_frame_(absl::Now()) {}

absl::StatusOr<WebSocket::Message> WebSocket::Read() { return Read(absl::InfiniteDuration()); }

absl::StatusOr<WebSocket::Message> WebSocket::Read(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  if (!pending_.empty()) frames_.Feed(std::exchange(pending_, {}));
  while (true) {
    absl::StatusOr<std::optional<WebSocketFrame>> frame = frames_.Next();
    if (!frame.ok()) {
      return Fail(absl::IsResourceExhausted(frame.status()) ? 1009 : 1002,
                  std::string(frame.status().message()));
    }
    if (frame->has_value()) {
      last_frame_ = absl::Now();
      absl::StatusOr<std::optional<Message>> message = HandleFrame(**frame);
      if (!message.ok()) return message.status();
      if (message->has_value()) return **std::move(message);
      continue;
    }
    const absl::Time given_up = last_frame_ + options_.idle_timeout;
    if (absl::Now() >= given_up) {
      socket_.Shutdown();
      return absl::UnavailableError("the peer has fallen silent");
    }
    if (absl::Now() >= next_ping_) {
      next_ping_ = absl::Now() + options_.ping_interval;
      if (const absl::Status sent = Ping(); !sent.ok() && close_code() != 1006) return sent;
    }
    std::array<char, 16384> bytes;
    const absl::StatusOr<size_t> n = socket_.Read(
        bytes.data(), bytes.size(), std::min({deadline, next_ping_, given_up}) - absl::Now());
    if (absl::IsDeadlineExceeded(n.status()) && absl::Now() < deadline) continue;
    if (!n.ok()) return n.status();
    if (*n == 0) return absl::UnavailableError("the connection ended without a close frame");
    frames_.Feed({bytes.data(), *n});
  }
}

absl::StatusOr<std::optional<WebSocket::Message>> WebSocket::HandleFrame(
    const WebSocketFrame& frame) {
  switch (frame.opcode) {
    case kOpPing:
      (void)WriteFrame(kOpPong, frame.payload);  // a broken connection shows at the next read
      return std::nullopt;
    case kOpPong:
      return std::nullopt;
    case kOpClose: {
      std::string echo;
      {
        const std::lock_guard lock(mu_);
        close_received_ = true;
        close_code_ = 1005;
        if (frame.payload.size() >= 2) {
          close_code_ = static_cast<uint16_t>(static_cast<uint8_t>(frame.payload[0]) << 8 |
                                              static_cast<uint8_t>(frame.payload[1]));
          close_reason_ = frame.payload.substr(2);
          echo = options_.echo_reason ? frame.payload : frame.payload.substr(0, 2);
        }
      }
      (void)WriteFrame(kOpClose, echo);
      return absl::OutOfRangeError("closed by the peer");
    }
    default:
      break;
  }
  if ((frame.opcode == kOpContinuation) != partial_.has_value()) {
    return Fail(1002, "fragments are out of order");
  }
  if (!partial_) {
    partial_ = Message{frame.opcode == kOpText ? Kind::kText : Kind::kBinary, ""};
  }
  if (partial_->data.size() + frame.payload.size() > options_.max_message_bytes) {
    return Fail(1009, "the message is too long");
  }
  partial_->data += frame.payload;
  if (!frame.fin) return std::nullopt;
  return std::exchange(partial_, std::nullopt);
}

absl::Status WebSocket::Fail(uint16_t code, std::string_view reason) {
  (void)Close(code, reason);
  return absl::UnavailableError("websocket: " + std::string(reason));
}

absl::Status WebSocket::Write(Kind kind, std::string_view data) {
  const uint8_t opcode = kind == Kind::kText ? kOpText : kOpBinary;
  if (!filter_) return WriteFrame(opcode, data);
  std::string payload(data);
  return filter_(payload, [&] { return WriteFrame(opcode, payload); });
}

absl::Status WebSocket::Ping(std::string_view payload) { return WriteFrame(kOpPing, payload); }

absl::Status WebSocket::Close(uint16_t code, std::string_view reason) {
  return WriteFrame(kOpClose, EncodeClose(code, reason));
}

absl::Status WebSocket::WriteFrame(uint8_t opcode, std::string_view payload) {
  std::optional<std::array<uint8_t, 4>> mask;
  if (options_.client) mask = RandomBytes<4>();
  const std::string frame = EncodeFrame(opcode, payload, true, mask);
  const std::lock_guard lock(mu_);
  if (close_sent_) return absl::UnavailableError("the close frame was sent already");
  if (opcode == kOpClose) close_sent_ = true;
  absl::Status sent = socket_.Write(frame, options_.write_timeout);
  // Half a frame may be on the wire: nothing can follow it.
  if (!sent.ok()) socket_.Shutdown();
  return sent;
}

uint16_t WebSocket::close_code() const {
  const std::lock_guard lock(mu_);
  return close_code_;
}

std::string WebSocket::close_reason() const {
  const std::lock_guard lock(mu_);
  return close_reason_;
}

}  // namespace bridge::local::http
