// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/admin.h"

#include <civetweb.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "bridge/base/error.h"

namespace bridge {
namespace {

const char* ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

// Connects and hangs up.
void Knock(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) !=
      0) {
    return;
  }
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) {
    (void)::connect(fd, found->ai_addr, found->ai_addrlen);  // "any address" is this machine
    ::close(fd);
  }
  freeaddrinfo(found);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const ListenAddress& address,
                                                                Handlers handlers) {
  if (address.unix_socket) return InvalidField("admin_listen", "cannot be a socket file");
  std::unique_ptr<AdminServer> server(new AdminServer(std::move(handlers)));
  // civetweb wants numbers.
  ListenAddress numeric = address;
  if (numeric.host == "localhost") numeric.host = "127.0.0.1";
  const std::string port = numeric.ToString();
  const char* options[] = {"listening_ports",    port.c_str(), "num_threads", "2",
                           "request_timeout_ms", "2000",       nullptr};
  mg_callbacks callbacks{};
  callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // not on stderr
  server->context_ = mg_start(&callbacks, server.get(), options);
  if (server->context_ == nullptr) {
    const std::string why = WhyNotBound(numeric);
    return InvalidField("admin_listen",
                        "cannot listen on " + address.ToString() + (why.empty() ? "" : ": " + why));
  }
  mg_server_port bound{};
  if (mg_get_server_ports(server->context_, 1, &bound) == 1) numeric.port = bound.port;
  server->address_ = numeric;
  mg_set_request_handler(server->context_, "/", &AdminServer::Serve, server.get());
  return server;
}

AdminServer::~AdminServer() {
  if (context_ == nullptr) return;
  // civetweb looks at its stop flag when it has accepted somebody, else every two seconds.
  std::atomic<bool> stopped{false};
  std::thread waker([this, &stopped] {
    while (!stopped.load()) {
      Knock(address_);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  mg_stop(context_);
  stopped.store(true);
  waker.join();
}

AdminAnswer AdminServer::Answer(const std::string& method, const std::string& path) const {
  const auto it = handlers_.find(path);
  if (it == handlers_.end()) return {.status = 404, .body = "not found\n"};
  if (method != "GET" && method != "HEAD") return {.status = 405, .body = "GET only\n"};
  return it->second();
}

int AdminServer::Serve(mg_connection* connection, void* self) {
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string method = request->request_method;
  const AdminAnswer answer =
      static_cast<const AdminServer*>(self)->Answer(method, request->local_uri);
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n",
            answer.status, ReasonPhrase(answer.status), answer.content_type.c_str(),
            answer.body.size());
  if (method != "HEAD") mg_write(connection, answer.body.data(), answer.body.size());
  return answer.status;
}

}  // namespace bridge
