// SPDX-License-Identifier: Apache-2.0
//
// local/http/socket.h — blocking TCP sockets with deadlines, and the unkind things one can do to
// one: reset it, or write it byte by byte.
//
// Reading and writing may happen in two threads at once; Shutdown() may be called from a third and
// makes both fail. Errors: UNAVAILABLE when the connection broke or was refused, DEADLINE_EXCEEDED,
// RESOURCE_EXHAUSTED when descriptors ran out.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bridge::local::http {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }

  // Bytes read; 0 at the peer's end of stream.
  absl::StatusOr<size_t> Read(char* to, size_t size,
                              absl::Duration timeout = absl::InfiniteDuration());
  absl::Status Write(std::string_view bytes, absl::Duration timeout = absl::InfiniteDuration());

  // Has the peer closed, or at least ended, its side? Does not block and reads nothing.
  bool PeerClosed() const;
  // Waits until the peer is gone or Shutdown() was called: true. After `timeout`: false.
  bool WaitPeerClosed(absl::Duration timeout) const;
  // Waits until something can be read (or the connection ended): true. After `timeout`: false.
  bool WaitReadable(absl::Duration timeout) const;

  // Ends the connection for all threads; the descriptor lives until destruction.
  void Shutdown();
  bool was_shut_down() const { return shut_down_.load(); }
  // Ends our direction only: the peer reads an end of stream.
  void ShutdownWrite();
  // Ends the peer's direction on our side: reading finds the end of the stream.
  void ShutdownRead();
  // Ends our direction, then waits (bounded) for the peer's end, so that what was written is not
  // destroyed by a reset that unread input would cause.
  void CloseGently();
  // Destruction will send a TCP reset instead of an orderly end. Ends the connection.
  void Reset();

  // At most this many bytes in one segment; 0 = no limit.
  void set_max_write(size_t bytes) { max_write_ = bytes; }

 private:
  const int fd_;
  std::atomic<bool> shut_down_{false};
  std::atomic<size_t> max_write_{0};
};

// host: a numeric IPv4 or IPv6 address or "localhost".
absl::StatusOr<int> ConnectTcp(const std::string& host, int port, absl::Duration timeout);

// Listens; the port that was chosen is in *port. host as above.
absl::StatusOr<int> ListenTcp(const std::string& host, int* port);

// "HOST:PORT", also "[::1]:80".
struct HostPort {
  std::string host;
  int port = 0;
};
// Of a TCP socket's address; empty for one of another kind.
HostPort HostPortOf(const sockaddr_storage& address);

// The port of a TCP socket's own end; 0 where it has none.
int LocalPort(int fd);

std::optional<HostPort> ParseHostPort(std::string_view text);

}  // namespace bridge::local::http
