// SPDX-License-Identifier: Apache-2.0
//
// local/http/websocket.h — a WebSocket connection (RFC 6455), either end of it.
//
// One thread may read while others write: writes are serialised, and reads answer pings and the
// peer's close themselves. Pings of our own are sent by a thread that is in Read(), when
// `ping_interval` has passed without one. Read() ends with OUT_OF_RANGE after a close frame (see
// close_code()), UNAVAILABLE when the connection broke or was shut down.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/local/http/socket.h"
#include "bridge/local/http/websocket_frame.h"

namespace bridge::local::http {

class WebSocket {
 public:
  enum class Kind { kText, kBinary };
  struct Message {
    Kind kind = Kind::kBinary;
    std::string data;
  };
  struct Options {
    absl::Duration ping_interval = absl::InfiniteDuration();
    // The peer is given up when no frame of it has come for so long (its pongs count), or when it
    // has not taken one of ours. Read() notices the former.
    absl::Duration idle_timeout = absl::InfiniteDuration();
    absl::Duration write_timeout = absl::InfiniteDuration();
    size_t max_message_bytes = size_t{64} << 20;  // longer ones close with 1009
    bool client = false;                          // our frames are masked
    bool echo_reason = false;  // the answer to a close frame repeats its text, not only its code
  };

  // `socket` outlives this. `pending`: bytes behind the handshake that were already read.
  WebSocket(Socket& socket, std::string pending, Options options);

  absl::StatusOr<Message> Read();
  // As Read, but DEADLINE_EXCEEDED after `timeout`; nothing is lost, reading may go on.
  absl::StatusOr<Message> Read(absl::Duration timeout);

  absl::Status Write(Kind kind, std::string_view data);
  absl::Status WriteText(std::string_view data) { return Write(Kind::kText, data); }
  absl::Status WriteBinary(std::string_view data) { return Write(Kind::kBinary, data); }
  absl::Status Ping(std::string_view payload = "");
  // Sends a close frame (code 0 = without a code), once; later writes fail. Does not wait for the
  // answer: Read() returns it.
  absl::Status Close(uint16_t code, std::string_view reason = "");

  // Of the peer's close frame. 1005 = it had no code, 1006 = none came. After Read() failed.
  uint16_t close_code() const;
  std::string close_reason() const;

  Socket& socket() { return socket_; }

  // Stands around the writing of each message: may change the payload, calls send() or does not,
  // and says what the write's result is. Set before any other thread writes.
  using WriteFilter =
      std::function<absl::Status(std::string& payload, const std::function<absl::Status()>& send)>;
  void set_write_filter(WriteFilter filter) { filter_ = std::move(filter); }

 private:
  absl::Status WriteFrame(uint8_t opcode, std::string_view payload);
  absl::StatusOr<std::optional<Message>> HandleFrame(const WebSocketFrame& frame);
  absl::Status Fail(uint16_t code, std::string_view reason);

  Socket& socket_;
  const Options options_;
  WriteFilter filter_;

  // Reader's.
  WebSocketFrameParser frames_;
  std::string pending_;
  std::optional<Message> partial_;
  absl::Time next_ping_;
  absl::Time last_frame_;

  mutable std::mutex mu_;  // guards the rest and the order of frames on the wire
  bool close_sent_ = false;
  bool close_received_ = false;
  uint16_t close_code_ = 1006;
  std::string close_reason_;
};

// Value of Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string WebSocketAccept(std::string_view key);
// A fresh Sec-WebSocket-Key.
std::string WebSocketKey();

}  // namespace bridge::local::http
