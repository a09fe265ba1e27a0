// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"

namespace bridge {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

bool IsLoopbackHost(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::StatusOr<ListenAddress> ParseUnix(std::string_view path, std::string_view flag) {
  if (path.size() < 2 || path.front() != '/') {
    return InvalidField(flag, "a socket file needs an absolute path: unix:/run/bridge.sock");
  }
  if (path.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return InvalidField(flag, "the path of a socket file has at most 107 bytes");
  }
  return ListenAddress{.host = std::string(path), .unix_socket = true};
}

std::string TryBind(int family, const sockaddr* address, socklen_t length) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::strerror(errno);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  std::string why;
  if (::bind(fd, address, length) != 0 || ::listen(fd, 1) != 0) why = std::strerror(errno);
  ::close(fd);
  return why;
}

// Binding a socket file would leave one, so only look at the folder.
std::string WhyNotBoundUnix(const std::string& path) {
  const std::string folder = path.substr(0, std::max<size_t>(path.rfind('/'), 1));
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? "" : std::strerror(errno);
}

}  // namespace

std::string ListenAddress::ToString() const {
  if (unix_socket) return std::string(kUnixPrefix) + host;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool ListenAddress::local() const { return unix_socket || IsLoopbackHost(host); }

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text, std::string_view flag) {
  if (text.substr(0, kUnixPrefix.size()) == kUnixPrefix) {
    return ParseUnix(text.substr(kUnixPrefix.size()), flag);
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return InvalidField(flag, "wants HOST:PORT, [IPv6]:PORT or unix:/PATH");
  }
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (host.empty() || brackets != (host.find(':') != std::string_view::npos)) {
    return InvalidField(flag, "wants HOST:PORT, [IPv6]:PORT or unix:/PATH");
  }
  const std::string_view digits = text.substr(colon + 1);
  int port = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535) {
    return InvalidField(flag, "has no port between 0 and 65535 after its last colon");
  }
  return ListenAddress{.host = std::string(host), .port = port};
}

absl::StatusOr<std::vector<ListenAddress>> ParseListenAddresses(std::string_view text,
                                                                std::string_view flag) {
  std::vector<ListenAddress> addresses;
  while (true) {
    const size_t comma = text.find(',');
    ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text.substr(0, comma), flag));
    addresses.push_back(std::move(address));
    if (comma == std::string_view::npos) return addresses;
    text.remove_prefix(comma + 1);
  }
}

std::string WhyNotBound(const ListenAddress& address) {
  if (address.unix_socket) return WhyNotBoundUnix(address.host);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) return gai_strerror(error);
  std::string why;
  for (const addrinfo* a = found; a != nullptr && why.empty(); a = a->ai_next) {
    why = TryBind(a->ai_family, a->ai_addr, a->ai_addrlen);
  }
  freeaddrinfo(found);
  return why;
}

}  // namespace bridge
