// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/forward.h"

#include <poll.h>

#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "bridge/base/ready_thread.h"
#include "bridge/local/http/client.h"

namespace bridge::local::lifecycle {
namespace {

using http::ClientExchange;
using http::WebSocket;

constexpr size_t kPiece = 64 * 1024;

enum class Ready { kBackend, kClientGone, kTimeout };

// Waits for bytes of the backend, but no longer than the client stays.
Ready WaitForBackend(http::Exchange& exchange, ClientExchange& backend, absl::Duration timeout) {
  std::array<pollfd, 2> fds{pollfd{backend.socket().fd(), POLLIN, 0},
                            pollfd{exchange.fd(), POLLRDHUP, 0}};
  const bool forever = timeout == absl::InfiniteDuration();
  const int ms = forever ? -1 : static_cast<int>(absl::ToInt64Milliseconds(timeout));
  if (poll(fds.data(), fds.size(), ms) == 0) return Ready::kTimeout;
  // Neither: a signal came. The backend is read once more, and waited for again.
  return fds[0].revents == 0 && fds[1].revents != 0 ? Ready::kClientGone : Ready::kBackend;
}

absl::Status SendRequest(http::Exchange& exchange, const ForwardPlan& plan,
                         ClientExchange& backend) {
  const http::Request& request = exchange.request();
  http::Headers headers = plan.headers;
  const bool chunked = plan.send_body && request.headers.Has("transfer-encoding");
  if (chunked) headers.Add("transfer-encoding", "chunked");
  if (absl::Status sent = backend.SendHead(request.method, plan.target, headers); !sent.ok()) {
    return sent;
  }
  if (!plan.send_body) return absl::OkStatus();
  auto piece = std::make_unique<std::array<char, kPiece>>();
  while (true) {
    const absl::StatusOr<size_t> n = exchange.ReadBody(piece->data(), piece->size());
    if (!n.ok()) return n.status();
    if (*n == 0) return backend.EndBody(chunked);
    if (absl::Status sent = backend.SendBody({piece->data(), *n}, chunked); !sent.ok()) return sent;
  }
}

// One read of the answer's head or body, given up when the client goes.
template <class Read>
auto ReadWhileClientStays(http::Exchange& exchange, ClientExchange& backend,
                          absl::Duration idle_timeout, Read read) -> decltype(read()) {
  while (true) {
    auto result = read();
    if (!absl::IsDeadlineExceeded(result.status())) return result;
    switch (WaitForBackend(exchange, backend, idle_timeout)) {
      case Ready::kBackend:
        continue;
      case Ready::kClientGone:
        return absl::CancelledError("the client has gone");
      case Ready::kTimeout:
        return absl::DeadlineExceededError("the backend is silent");
    }
  }
}

ForwardResult RelayBody(http::Exchange& exchange, const ForwardPlan& plan,
                        ClientExchange& backend) {
  auto piece = std::make_unique<std::array<char, kPiece>>();
  while (true) {
    const absl::StatusOr<size_t> n = ReadWhileClientStays(
        exchange, backend, plan.idle_timeout,
        [&] { return backend.ReadBody(piece->data(), piece->size(), absl::ZeroDuration()); });
    if (n.ok() && *n > 0) {
      if (exchange.Write({piece->data(), *n}).ok()) continue;
      return ForwardResult::kDone;
    }
    if (n.ok() || plan.end_broken_answers) (void)exchange.Finish();
    if (!n.ok()) exchange.CloseAfter();
    return ForwardResult::kDone;
  }
}

}  // namespace

bool IsHopByHop(std::string_view name) {
  for (const char* hop : {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
                          "te", "trailer", "trailers", "transfer-encoding", "upgrade"}) {
    if (http::EqualsIgnoreCase(name, hop)) return true;
  }
  return false;
}

ForwardResult ForwardHttp(http::Exchange& exchange, const ForwardPlan& plan) {
  absl::StatusOr<std::unique_ptr<ClientExchange>> backend =
      ClientExchange::Connect(plan.host, plan.port, plan.connect_timeout);
  if (!backend.ok()) return ForwardResult::kNoConnection;
  // A backend may answer before it has read everything, and close: its answer counts.
  (void)SendRequest(exchange, plan, **backend);
  const absl::StatusOr<http::Parser::Head> head =
      ReadWhileClientStays(exchange, **backend, plan.idle_timeout,
                           [&] { return (*backend)->ReadHead(absl::ZeroDuration()); });
  if (absl::IsCancelled(head.status())) {
    exchange.CloseAfter();
    return ForwardResult::kDone;
  }
  if (absl::IsDeadlineExceeded(head.status())) return ForwardResult::kTimeout;
  if (!head.ok()) return ForwardResult::kBrokenResponse;
  http::Response response = plan.head(*head);
  if (!exchange.Start(std::move(response)).ok()) return ForwardResult::kDone;
  return RelayBody(exchange, plan, **backend);
}

namespace {

absl::StatusOr<http::Parser::Head> Handshake(const WebSocketPlan& plan, ClientExchange& backend) {
  http::Headers headers = plan.headers;
  headers.Add("Upgrade", "websocket");
  headers.Add("Connection", "Upgrade");
  headers.Add("Sec-WebSocket-Key", http::WebSocketKey());
  headers.Add("Sec-WebSocket-Version", "13");
  if (absl::Status sent = backend.SendHead("GET", plan.target, headers); !sent.ok()) return sent;
  return backend.ReadHead(absl::Seconds(60));
}

http::Response ReadRefusal(const http::Parser::Head& head, ClientExchange& backend) {
  http::Response response{head.status, head.headers, "", head.reason};
  std::array<char, 4096> piece;
  while (response.body.size() < (1 << 20)) {
    const absl::StatusOr<size_t> n = backend.ReadBody(piece.data(), piece.size(), absl::Seconds(5));
    if (!n.ok() || *n == 0) break;
    response.body.append(piece.data(), *n);
  }
  return response;
}

// Passes messages from one end to the other until one of them is gone, and then says so there.
void Pump(WebSocket& from, WebSocket& to, uint16_t broken_code) {
  while (true) {
    const absl::StatusOr<WebSocket::Message> message = from.Read();
    if (message.ok()) {
      if (to.Write(message->kind, message->data).ok()) continue;
      // The other pump reads how that end has ended, and says so at this one.
      to.socket().Shutdown();
      return;
    }
    if (absl::IsOutOfRange(message.status())) {
      const uint16_t code = from.close_code();
      (void)to.Close(code == 1005 ? 0 : code, from.close_reason());
      // The other pump ends with the answer to that.
      return;
    }
    if (broken_code == 0 || !to.Close(broken_code).ok()) to.socket().Shutdown();
    return;
  }
}

}  // namespace

WebSocketResult ForwardWebSocket(http::Exchange& exchange, const WebSocketPlan& plan) {
  std::optional<ReadyThread> ready = ReadyThread::Make();
  if (!ready) return {ForwardResult::kNoConnection, {}};
  absl::StatusOr<std::unique_ptr<ClientExchange>> backend =
      ClientExchange::Connect(plan.host, plan.port, plan.connect_timeout);
  if (!backend.ok()) return {ForwardResult::kNoConnection, {}};
  const absl::StatusOr<http::Parser::Head> head = Handshake(plan, **backend);
  if (!head.ok()) return {ForwardResult::kBrokenResponse, {}};
  if (head->status != 101) return {ForwardResult::kDone, ReadRefusal(*head, **backend)};

  http::Headers accept_headers = plan.accept_headers;
  if (const auto protocol = head->headers.Get("sec-websocket-protocol")) {
    accept_headers.Add("Sec-WebSocket-Protocol", *protocol);
  }
  const bool own_close = plan.broken_code != 0;  // we speak for ourselves on both sides
  absl::StatusOr<std::unique_ptr<WebSocket>> client =
      exchange.AcceptWebSocket({.echo_reason = own_close}, accept_headers);
  if (!client.ok()) return {ForwardResult::kDone, {}};
  const std::unique_ptr<WebSocket> server = (*backend)->TakeWebSocket({});
  // Whoever has had a close frame gets a moment to answer it before the connection goes.
  constexpr absl::Duration kLastWords = absl::Seconds(5);
  std::thread upwards = std::move(*ready).Run([&] {
    Pump(**client, *server, own_close ? 1001 : 0);
    (void)(*backend)->socket().WaitPeerClosed(kLastWords);
    (*backend)->Abort();
  });
  Pump(*server, **client, plan.broken_code);
  (void)exchange.socket().WaitPeerClosed(kLastWords);
  exchange.socket().Shutdown();
  upwards.join();
  return {ForwardResult::kDone, {}};
}

}  // namespace bridge::local::lifecycle
