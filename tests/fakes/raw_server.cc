// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/raw_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace bridge {
namespace {

constexpr int kPatienceSeconds = 10;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address Loopback(RawServer::Family family, int port) {
  Address address;
  if (family == RawServer::Family::kIpv6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_addr = in6addr_loopback;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(*v6);
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v4->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(*v4);
  }
  return address;
}

// A socket bound to a free port of loopback; fails the process when there is none.
int Bound(RawServer::Family family, int* port) {
  Address address = Loopback(family, 0);
  const int fd = ::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  if (family == RawServer::Family::kIpv6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
  }
  if (fd < 0 || ::bind(fd, address.get(), address.size) != 0 ||
      ::getsockname(fd, address.get(), &address.size) != 0) {
    std::perror("cannot bind to loopback");
    std::abort();
  }
  *port = ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);
  return fd;
}

}  // namespace

// ---- RawConnection

RawConnection::RawConnection(int fd, int index, SSL_CTX* tls) : fd_(fd), index_(index) {
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (tls == nullptr) return;
  tls_ = SSL_new(tls);
  SSL_set_fd(tls_, fd);
  (void)SSL_accept(tls_);  // a client that does not trust us ends it here
}

RawConnection::~RawConnection() { Close(); }

bool RawConnection::Fill() {
  if (fd_ < 0) return false;
  char bytes[65536];
  errno = 0;
  const ssize_t n =
      tls_ != nullptr ? SSL_read(tls_, bytes, sizeof(bytes)) : ::recv(fd_, bytes, sizeof(bytes), 0);
  if (n <= 0) {
    if (errno == EAGAIN) ADD_FAILURE() << "the peer sent nothing for ten seconds";
    return false;
  }
  buffer_.append(bytes, static_cast<size_t>(n));
  return true;
}

std::string RawConnection::ReadHead() {
  size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!Fill()) return {};
  }
  return Read(end + 4);
}

std::string RawConnection::Read(size_t bytes) {
  while (buffer_.size() < bytes && Fill()) continue;
  std::string result = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes);
  return result;
}

std::string RawConnection::ReadToEnd() {
  while (Fill()) continue;
  return std::exchange(buffer_, {});
}

std::string RawConnection::ReadSome() {
  if (buffer_.empty()) Fill();
  return std::exchange(buffer_, {});
}

std::string RawConnection::ReadChunkedBody() {
  std::string body;
  while (true) {
    size_t end;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!Fill()) return body;
    }
    const size_t size = std::strtoul(Read(end + 2).c_str(), nullptr, 16);
    std::string chunk = Read(size + 2);
    if (chunk.size() < size + 2 || size == 0) return body;
    body.append(chunk, 0, size);
  }
}

bool RawConnection::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = tls_ != nullptr
                          ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                          : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

size_t RawConnection::WriteUntilFull() {
  const std::string block(64 * 1024, 'x');
  size_t total = 0;
  while (true) {
    pollfd wait{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&wait, 1, 200) == 0) return total;
    const ssize_t n = ::send(fd_, block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) return total;
    if (n > 0) total += static_cast<size_t>(n);
  }
}

void RawConnection::RelayTo(int port, std::chrono::milliseconds idle) {
  std::string bytes = ReadSome();
  if (bytes.empty()) return;  // nobody who trusts us
  Address address = Loopback(RawServer::Family::kIpv4, port);
  const int behind = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool open = ::connect(behind, address.get(), address.size) == 0;
  while (open) {
    for (size_t sent = 0; open && sent < bytes.size();) {
      const ssize_t n = ::send(behind, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      open = n > 0;
      if (open) sent += static_cast<size_t>(n);
    }
    bytes.clear();
    pollfd both[] = {{.fd = fd_, .events = POLLIN, .revents = 0},
                     {.fd = behind, .events = POLLIN, .revents = 0}};
    open = open && ::poll(both, 2, static_cast<int>(idle.count())) > 0;
    if (open && both[1].revents != 0) {
      char back[65536];
      const ssize_t n = ::recv(behind, back, sizeof(back), 0);
      open = n > 0 && Write({back, static_cast<size_t>(n)});
    }
    if (open && both[0].revents != 0) {
      bytes = ReadSome();
      open = !bytes.empty();
    }
  }
  ::close(behind);
}

void RawConnection::EndWriting() {
  if (tls_ != nullptr) SSL_shutdown(tls_);
  ::shutdown(fd_, SHUT_WR);
}

void RawConnection::Reset() {
  const linger hard{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  // The server holds a copy of the descriptor, so that closing this one would not reset anything.
  // Disconnecting does.
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  EXPECT_EQ(::connect(fd_, &none, sizeof(none)), 0);
  Close();
}

void RawConnection::Close() {
  if (fd_ < 0) return;
  SSL_free(std::exchange(tls_, nullptr));
  ::shutdown(fd_, SHUT_RDWR);
  ::close(std::exchange(fd_, -1));
}

// ---- RawServer

RawServer::RawServer(Script script, Family family)
    : RawServer(std::move(script), family, nullptr) {}

RawServer::RawServer(const TestCertificate& certificate, Script script)
    : RawServer(std::move(script), Family::kIpv4, certificate.NewServerContext()) {}

RawServer::RawServer(Script script, Family family, SSL_CTX* tls)
    : script_(std::move(script)), tls_(tls), listener_(Bound(family, &port_)) {
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  ::listen(listener_, 1024);
  accepting_ = std::thread([this] { Serve(); });
}

RawServer::~RawServer() {
  {
    std::lock_guard lock(mu_);
    stopping_ = true;
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  for (std::thread& script : scripts_) script.join();
  for (const int fd : open_) ::close(fd);
  ::close(listener_);
  SSL_CTX_free(tls_);
}

void RawServer::AwaitScripts() {
  std::unique_lock lock(mu_);
  idle_.wait(lock, [this] { return running_ == 0; });
}

std::string RawServer::Url(std::string_view path) const {
  return (tls_ != nullptr ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_) +
         std::string(path);
}

void RawServer::Serve() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    {
      std::lock_guard lock(mu_);
      if (stopping_) {
        ::close(fd);
        return;
      }
      open_.push_back(fcntl(fd, F_DUPFD_CLOEXEC, 0));
      ++running_;
    }
    const int index = accepted_++;
    scripts_.emplace_back([this, fd, index] {
      {
        RawConnection peer(fd, index, tls_);
        script_(peer);
      }
      std::lock_guard lock(mu_);
      --running_;
      idle_.notify_all();
    });
  }
}

// ---- Ports without a server

ClosedPort::ClosedPort() : fd_(Bound(RawServer::Family::kIpv4, &port_)) {}

ClosedPort::~ClosedPort() { ::close(fd_); }

SilentPort::SilentPort() : fd_(Bound(RawServer::Family::kIpv4, &port_)) {
  ::listen(fd_, 0);
  Address address = Loopback(RawServer::Family::kIpv4, port_);
  for (int i = 0; i < 8; ++i) {
    const int filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int begun = ::connect(filler, address.get(), address.size);
    EXPECT_TRUE(begun == 0 || errno == EINPROGRESS);
    fillers_.push_back(filler);
  }
}

SilentPort::~SilentPort() {
  for (const int filler : fillers_) ::close(filler);
  ::close(fd_);
}

bool HasIpv6Loopback() {
  Address address = Loopback(RawServer::Family::kIpv6, 0);
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool bound = ::bind(fd, address.get(), address.size) == 0;
  ::close(fd);
  return bound;
}

}  // namespace bridge
