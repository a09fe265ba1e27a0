// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/proxy_route.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <thread>
#include <utility>

#include "bridge/base/ready_thread.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/reply.h"
#include "bridge/local/http/client.h"
#include "bridge/local/http/socket.h"

namespace bridge::local::execd {
namespace {

using http::ClientExchange;
using http::Exchange;
using http::Headers;

constexpr absl::Duration kConnectTimeout = absl::Seconds(30);
constexpr size_t kPieceBytes = 64 * 1024;

constexpr std::array<std::string_view, 9> kHopByHop = {"Connection",
                                                       "Proxy-Connection",
                                                       "Keep-Alive",
                                                       "Proxy-Authenticate",
                                                       "Proxy-Authorization",
                                                       "Te",
                                                       "Transfer-Encoding",
                                                       "Trailer",
                                                       "Upgrade"};

bool IsHopByHop(const Headers& headers, std::string_view name) {
  return std::any_of(kHopByHop.begin(), kHopByHop.end(),
                     [&](std::string_view hop) { return http::EqualsIgnoreCase(hop, name); }) ||
         headers.HasToken("Connection", name);
}

// "Content-Type": the case in which Go's server keeps names.
std::string Canonical(std::string_view name) {
  std::string out = http::AsciiLower(name);
  bool upper = true;
  for (char& c : out) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    upper = c == '-';
  }
  return out;
}

// By name, as Go writes them; values of one name keep their order.
Headers Sorted(const Headers& headers) {
  std::multimap<std::string, std::string> sorted;
  for (const auto& [name, value] : headers) sorted.emplace(Canonical(name), value);
  Headers out;
  for (const auto& [name, value] : sorted) out.Add(name, value);
  return out;
}

Headers EndToEnd(const Headers& headers) {
  Headers out;
  for (const auto& [name, value] : headers) {
    if (!IsHopByHop(headers, name)) out.Add(name, value);
  }
  return out;
}

void BadGateway(Exchange& exchange) {
  http::Response response;
  response.status = 502;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  response.headers.Add("X-Content-Type-Options", "nosniff");
  response.body = "Bad Gateway\n";
  (void)exchange.Respond(std::move(response));
}

Headers RequestHeaders(const http::Request& request, bool upgrade, bool chunked) {
  Headers rest = EndToEnd(request.headers);
  const std::string host(rest.Get("Host").value_or(""));
  rest.Remove("Host");
  rest.Set("X-Forwarded-For", request.peer + ", " + request.peer_host);
  rest.Set("X-Forwarded-Proto", "http");
  if (upgrade) {
    rest.Add("Connection", "Upgrade");
    rest.Add("Upgrade", request.headers.Get("Upgrade").value_or("websocket"));
  }
  Headers out{{"Host", host}};
  for (const auto& [name, value] : Sorted(rest)) out.Add(name, value);
  if (chunked) out.Add("Transfer-Encoding", "chunked");
  return out;
}

bool SendRequest(Exchange& exchange, ClientExchange& backend, const std::string& target,
                 bool upgrade) {
  const http::Request& request = exchange.request();
  const bool chunked = request.headers.HasToken("Transfer-Encoding", "chunked");
  if (!backend.SendHead(request.method, target, RequestHeaders(request, upgrade, chunked)).ok()) {
    return false;
  }
  if (!chunked && !request.headers.Has("Content-Length")) return true;
  std::string buffer(kPieceBytes, '\0');
  while (true) {
    const auto n = exchange.ReadBody(buffer.data(), buffer.size());
    if (!n.ok()) return false;
    if (*n == 0) return backend.EndBody(chunked).ok();
    // A backend that answers before it has read everything may still be heard.
    if (!backend.SendBody(std::string_view(buffer).substr(0, *n), chunked).ok()) return true;
  }
}

// Copies until either side ends, then ends the other's direction.
void Copy(http::Socket& from, http::Socket& to) {
  std::string buffer(kPieceBytes, '\0');
  while (true) {
    const auto n = from.Read(buffer.data(), buffer.size());
    if (!n.ok() || *n == 0) break;
    if (!to.Write(std::string_view(buffer).substr(0, *n)).ok()) break;
  }
  to.ShutdownWrite();
}

// The backend has switched protocols: bytes flow both ways, whatever they mean.
void Tunnel(Exchange& exchange, ClientExchange& backend, const http::Parser::Head& head) {
  auto ready = ReadyThread::Make();
  if (!ready) return BadGateway(exchange);
  std::string pending;
  http::Socket& client = exchange.Hijack(&pending);
  std::string text = "HTTP/1.1 101 Switching Protocols\r\n";
  for (const auto& [name, value] : Sorted(head.headers)) text += name + ": " + value + "\r\n";
  if (!client.Write(text + "\r\n" + backend.TakePending()).ok()) return;
  if (!backend.socket().Write(pending).ok()) return;
  std::thread back = std::move(*ready).Run([&] {
    Copy(backend.socket(), client);
    // Whoever has got the backend's last byte has nothing more to say to it.
    if (!client.WaitPeerClosed(absl::Seconds(5))) client.Shutdown();
  });
  Copy(client, backend.socket());
  back.join();
}

void SendAnswer(Exchange& exchange, ClientExchange& backend, const http::Parser::Head& head) {
  http::Response response;
  response.status = head.status;
  response.headers = Sorted(EndToEnd(head.headers));
  if (!exchange.Start(std::move(response)).ok()) return;
  std::string buffer(kPieceBytes, '\0');
  while (true) {
    const auto n = backend.ReadBody(buffer.data(), buffer.size(), absl::InfiniteDuration());
    if (!n.ok()) return;  // the client sees an unfinished body as well
    if (*n == 0) break;
    if (!exchange.Write(std::string_view(buffer).substr(0, *n)).ok()) return;
  }
  (void)exchange.Finish();
}

// While it lives, the client's going (or the server's stop, which ends all connections) ends the
// connection to the backend, so that nobody waits for an answer that nobody wants.
class Guard {
 public:
  Guard(const Exchange& exchange, ClientExchange& backend, ReadyThread ready)
      : done_(eventfd(0, EFD_CLOEXEC)),
        thread_(std::move(ready).Run([this, &backend, fd = exchange.fd()] {
          pollfd fds[2] = {{fd, POLLRDHUP, 0}, {done_, POLLIN, 0}};
          while (poll(fds, 2, -1) < 0 && errno == EINTR) {
          }
          if (fds[1].revents == 0) backend.Abort();
        })) {}
  ~Guard() {
    const uint64_t one = 1;
    (void)!write(done_, &one, sizeof(one));
    thread_.join();
    close(done_);
  }

 private:
  const int done_;
  std::thread thread_;
};

void Proxy(Exchange& exchange, int own_port) {
  const http::Request& request = exchange.request();
  auto port = JsonInteger(exchange.request().param("port"));
  if (port == own_port) port = http::LocalPort(exchange.fd());
  if (!port || *port < 1 || *port > 65535) return BadGateway(exchange);
  auto watcher = ReadyThread::Make();
  if (!watcher) return BadGateway(exchange);
  auto connected = ClientExchange::Connect("127.0.0.1", static_cast<int>(*port), kConnectTimeout);
  if (!connected.ok()) return BadGateway(exchange);
  ClientExchange& backend = **connected;
  const Guard guard(exchange, backend, *std::move(watcher));
  const bool upgrade = request.headers.HasToken("Connection", "Upgrade");
  const std::string target = ProxyTarget(request.raw_path, request.raw_query);
  if (!SendRequest(exchange, backend, target, upgrade)) return BadGateway(exchange);
  const auto head = backend.ReadHead(absl::InfiniteDuration());
  if (!head.ok()) {
    BadGateway(exchange);
  } else if (head->status == 101) {
    Tunnel(exchange, backend, *head);
  } else {
    SendAnswer(exchange, backend, *head);
  }
}

}  // namespace

std::string ProxyTarget(std::string_view raw_path, std::string_view raw_query) {
  // "/proxy/PORT" and what follows.
  size_t at = raw_path.find('/', 1);
  if (at != std::string_view::npos) at = raw_path.find('/', at + 1);
  std::string out;
  std::string_view rest = at == std::string_view::npos ? "/" : raw_path.substr(at);
  while (!rest.empty()) {
    const std::string_view escape = rest.substr(0, 3);
    if (escape == "%2F" || escape == "%2f") {
      out += '/';
      rest.remove_prefix(3);
    } else {
      out += rest.front();
      rest.remove_prefix(1);
    }
  }
  if (!raw_query.empty()) out.append("?").append(raw_query);
  return out;
}

void AddProxyRoute(http::Router& router, int own_port) {
  const auto handler = [own_port](Exchange& x) { Proxy(x, own_port); };
  router.Add("*", "/proxy/{port}", handler);
  router.Add("*", "/proxy/{port}/{rest...}", handler);
}

}  // namespace bridge::local::execd
