// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace bridge::local::http {
namespace {

absl::Status ErrnoStatus(const char* what, int error) {
  const std::string text = std::string(what) + ": " + std::strerror(error);
  if (error == EMFILE || error == ENFILE) return absl::ResourceExhaustedError(text);
  if (error == ETIMEDOUT) return absl::DeadlineExceededError(text);
  return absl::UnavailableError(text);
}

// Milliseconds for poll(): rounded up, -1 for ever, at most a day at a time.
int PollMillis(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left = deadline - absl::Now();
  if (left <= absl::ZeroDuration()) return 0;
  const int64_t ms = absl::ToInt64Milliseconds(left + absl::Microseconds(999));
  return static_cast<int>(std::min<int64_t>(ms, 86'400'000));
}

// Waits for `events` on fd. True when they (or an error) are there, false at the deadline.
bool PollFor(int fd, short events, absl::Time deadline) {
  while (true) {
    pollfd p{fd, events, 0};
    const int n = poll(&p, 1, PollMillis(deadline));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // let the next call report it
    if (absl::Now() >= deadline) return false;
  }
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family = AF_INET;
};

bool MakeAddress(const std::string& host, int port, Address* out) {
  const std::string numeric = host == "localhost" ? "127.0.0.1" : host;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out->storage);
  if (inet_pton(AF_INET, numeric.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    out->size = sizeof(sockaddr_in);
    out->family = AF_INET;
    return true;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out->storage);
  if (inet_pton(AF_INET6, numeric.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    out->size = sizeof(sockaddr_in6);
    out->family = AF_INET6;
    return true;
  }
  return false;
}

}  // namespace

Socket::~Socket() { close(fd_); }

absl::StatusOr<size_t> Socket::Read(char* to, size_t size, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const ssize_t n = recv(fd_, to, size, MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return ErrnoStatus("read", errno);
    if (!PollFor(fd_, POLLIN, deadline)) return absl::DeadlineExceededError("read timed out");
  }
}

absl::Status Socket::Write(std::string_view bytes, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!bytes.empty()) {
    const size_t limit = max_write_.load();
    const size_t size = limit == 0 ? bytes.size() : std::min(limit, bytes.size());
    const ssize_t n = send(fd_, bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return ErrnoStatus("write", errno);
    if (!PollFor(fd_, POLLOUT, deadline)) return absl::DeadlineExceededError("write timed out");
  }
  return absl::OkStatus();
}

bool Socket::PeerClosed() const { return WaitPeerClosed(absl::ZeroDuration()); }

bool Socket::WaitPeerClosed(absl::Duration timeout) const {
  const absl::Time deadline = absl::Now() + timeout;
  return shut_down_.load() || PollFor(fd_, POLLRDHUP, deadline) || shut_down_.load();
}

bool Socket::WaitReadable(absl::Duration timeout) const {
  return PollFor(fd_, POLLIN | POLLRDHUP, absl::Now() + timeout);
}

void Socket::Shutdown() {
  shut_down_.store(true);
  shutdown(fd_, SHUT_RDWR);
}

void Socket::ShutdownRead() { shutdown(fd_, SHUT_RD); }

void Socket::ShutdownWrite() { shutdown(fd_, SHUT_WR); }

void Socket::CloseGently() {
  ShutdownWrite();
  // A second, or 4 MiB, is enough for a peer that reads our answer while it still sends.
  const absl::Time deadline = absl::Now() + absl::Seconds(1);
  std::array<char, 8192> sink;
  for (size_t taken = 0; taken < size_t{4} << 20;) {
    const absl::StatusOr<size_t> n = Read(sink.data(), sink.size(), deadline - absl::Now());
    if (!n.ok() || *n == 0) break;
    taken += *n;
  }
  Shutdown();
}

void Socket::Reset() {
  const linger none{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  // Disconnecting (rather than shutting down, which would send a FIN first) sends the reset now,
  // while the descriptor stays valid for other threads.
  sockaddr unspecified{};
  unspecified.sa_family = AF_UNSPEC;
  (void)connect(fd_, &unspecified, sizeof(unspecified));
  Shutdown();
}

absl::StatusOr<int> ConnectTcp(const std::string& host, int port, absl::Duration timeout) {
  Address address;
  if (!MakeAddress(host, port, &address)) {
    return absl::InvalidArgumentError("not a numeric address: " + host);
  }
  const int fd = socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus("socket", errno);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address.storage), address.size) == 0) return fd;
  int error = errno;
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    if (PollFor(fd, POLLOUT, absl::Now() + timeout)) {
      socklen_t size = sizeof(error);
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return fd;
  close(fd);
  return ErrnoStatus("connect", error);
}

absl::StatusOr<int> ListenTcp(const std::string& host, int* port) {
  Address address;
  if (!MakeAddress(host, *port, &address)) {
    return absl::InvalidArgumentError("not a numeric address: " + host);
  }
  const int fd = socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus("socket", errno);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address.storage), address.size) == 0 &&
                  listen(fd, 4096) == 0;
  if (!ok) {
    const int error = errno;
    close(fd);
    return ErrnoStatus("listen", error);
  }
  *port = LocalPort(fd);
  return fd;
}

HostPort HostPortOf(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return {text.data(), ntohs(v6.sin6_port)};
}

int LocalPort(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return HostPortOf(address).port;
}

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  HostPort out;
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  out.host = std::string(host);
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (out.host.empty() || out.port < 0 || out.port > 65535) return std::nullopt;
  return out;
}

}  // namespace bridge::local::http
