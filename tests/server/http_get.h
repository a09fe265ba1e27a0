// SPDX-License-Identifier: Apache-2.0
//
// tests/server/http_get.h — one HTTP request to a port of this machine, answer as text.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace bridge::testing {

// Everything that comes until the peer closes; empty when nobody listens.
inline std::string SendRaw(int port, const std::string& bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  std::string answer;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(fd, SHUT_WR);
    char buffer[4096];
    ssize_t n;
    while ((n = ::read(fd, buffer, sizeof buffer)) > 0)
      answer.append(buffer, static_cast<size_t>(n));
  }
  ::close(fd);
  return answer;
}

inline std::string HttpGet(int port, const std::string& path, const std::string& method = "GET") {
  return SendRaw(port,
                 method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

}  // namespace bridge::testing
