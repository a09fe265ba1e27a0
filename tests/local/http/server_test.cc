// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bridge/local/http/client.h"
#include "bridge/local/http/router.h"

namespace bridge::local::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sends exact bytes and returns all that comes back until the server ends the connection.
std::string Raw(int port, std::string_view bytes) {
  absl::StatusOr<int> fd = ConnectTcp("127.0.0.1", port, absl::Seconds(5));
  if (!fd.ok()) return std::string(fd.status().message());
  Socket socket(*fd);
  (void)socket.Write(bytes);
  std::string got;
  std::array<char, 4096> piece;
  while (true) {
    const absl::StatusOr<size_t> n = socket.Read(piece.data(), piece.size(), absl::Seconds(10));
    if (!n.ok()) return got + "<" + std::string(n.status().message()) + ">";
    if (*n == 0) return got;
    got.append(piece.data(), *n);
  }
}

std::unique_ptr<Server> Serve(Handler handler, ServerOptions options = {}) {
  options.date_header = false;
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(std::move(options), std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(Server, AnswersWithContentLengthAlsoWhenEmpty) {
  const auto server = Serve([](Exchange& x) { (void)x.Respond({202, {{"X-A", "b"}}, ""}); });
  EXPECT_EQ(Raw(server->port(), "GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 202 Accepted\r\nX-A: b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST(Server, NoContentHasNoLength) {
  const auto server = Serve([](Exchange& x) { (void)x.Respond({204, {}, ""}); });
  EXPECT_EQ(Raw(server->port(), "DELETE /a HTTP/1.1\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

TEST(Server, KeepsTheConnectionAndTakesPipelinedRequests) {
  const auto server = Serve([](Exchange& x) { (void)x.Respond({200, {}, x.request().target}); });
  EXPECT_EQ(
      Raw(server->port(), "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n"),
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/1"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n/2");
}

TEST(Server, StreamsOneChunkAWrite) {
  const auto server = Serve([](Exchange& x) {
    (void)x.Start({200, {}, ""});
    (void)x.Write("one");
    (void)x.Write("");
    (void)x.Write("a longer piece of text");
    (void)x.Finish();
  });
  EXPECT_EQ(Raw(server->port(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\none\r\n16\r\na longer piece of text\r\n0\r\n\r\n");
}

TEST(Server, HandlerSeesWhatWasSent) {
  std::string seen;
  const auto server = Serve([&seen](Exchange& x) {
    const Request& r = x.request();
    seen = r.method + " " + r.target + " " + r.path;
    for (const QueryParam& q : r.query) seen += " " + q.name + "=" + q.value;
    for (const auto& [name, value] : r.headers) seen += " " + name + ":" + value;
    seen += " body:" + x.ReadAll().value_or("?");
    EXPECT_THAT(r.peer, StartsWith("127.0.0.1:"));
    (void)x.Respond({200, {}, ""});
  });
  Raw(server->port(),
      "PUT /a%20b/c?x=1&y=%2F+z&x=2 HTTP/1.1\r\nHoSt: h\r\nConnection: close\r\n"
      "Content-Length: 4\r\n\r\nbody");
  EXPECT_EQ(seen,
            "PUT /a%20b/c?x=1&y=%2F+z&x=2 /a b/c x=1 y=/ z x=2 HoSt:h Connection:close "
            "Content-Length:4 body:body");
}

TEST(Server, LargeBodiesPassInBothDirections) {
  const auto server = Serve([](Exchange& x) {
    unsigned long long sum = 0;
    size_t total = 0;
    std::array<char, 32768> piece;
    while (true) {
      const absl::StatusOr<size_t> n = x.ReadBody(piece.data(), piece.size());
      ASSERT_TRUE(n.ok()) << n.status();
      if (*n == 0) break;
      total += *n;
      for (size_t i = 0; i < *n; ++i) sum += static_cast<unsigned char>(piece[i]);
    }
    (void)x.Respond({200, {}, std::to_string(total) + " " + std::to_string(sum)});
  });
  std::string body(5 << 20, '\0');
  unsigned long long sum = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 7);
    sum += static_cast<unsigned char>(body[i]);
  }
  const auto answer = Fetch("127.0.0.1", server->port(), "POST", "/", {}, body);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, std::to_string(body.size()) + " " + std::to_string(sum));
}

TEST(Server, MalformedInputGets400) {
  const auto server = Serve([](Exchange& x) { (void)x.Respond({200, {}, ""}); });
  EXPECT_THAT(Raw(server->port(), "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
}

TEST(Server, StopEndsWaitingHandlers) {
  std::atomic<int> waiting{0};
  const auto server = Serve([&waiting](Exchange& x) {
    ++waiting;
    x.Sleep(absl::InfiniteDuration());
  });
  std::vector<std::thread> clients;
  clients.reserve(8);
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] { Raw(server->port(), "GET / HTTP/1.1\r\n\r\n"); });
  }
  while (waiting != 8) std::this_thread::yield();
  server->Stop();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server->connections(), 0u);
}

TEST(Server, WebSocketEchoesWhileAnotherThreadWrites) {
  const auto server = Serve([](Exchange& x) {
    ASSERT_TRUE(x.IsWebSocket());
    auto ws = x.AcceptWebSocket();
    ASSERT_TRUE(ws.ok());
    std::jthread writer([&ws] {
      for (int i = 0; i < 100; ++i) (void)(*ws)->WriteText("tick");
    });
    while (true) {
      auto message = (*ws)->Read();
      if (!message.ok()) break;
      if (message->data == "end") {
        writer.join();
        (void)(*ws)->Close(4001, "done");
        continue;
      }
      (void)(*ws)->Write(message->kind, message->data);
    }
  });
  auto client = ClientExchange::Connect("127.0.0.1", server->port(), absl::Seconds(5));
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE((*client)
                  ->SendHead("GET", "/",
                             {{"Host", "h"},
                              {"Upgrade", "websocket"},
                              {"Connection", "Upgrade"},
                              {"Sec-WebSocket-Version", "13"},
                              {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}})
                  .ok());
  auto head = (*client)->ReadHead(absl::Seconds(5));
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->status, 101);
  // The example of RFC 6455 section 1.3.
  EXPECT_EQ(head->headers.Get("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  auto ws = (*client)->TakeWebSocket({});
  const std::string big(200000, 'x');
  ASSERT_TRUE(ws->WriteBinary(big).ok());
  ASSERT_TRUE(ws->WriteText("end").ok());
  int ticks = 0;
  bool echoed = false;
  while (true) {
    auto message = ws->Read(absl::Seconds(10));
    if (!message.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(message.status())) << message.status();
      break;
    }
    if (message->data == "tick") ++ticks;
    if (message->data == big) echoed = message->kind == WebSocket::Kind::kBinary;
  }
  EXPECT_EQ(ticks, 100);
  EXPECT_TRUE(echoed);
  EXPECT_EQ(ws->close_code(), 4001);
  EXPECT_EQ(ws->close_reason(), "done");
}

TEST(Server, HeadGetsTheHeadOnly) {
  const auto server = Serve([](Exchange& x) { (void)x.Respond({404, {}, "not here"}); });
  EXPECT_EQ(Raw(server->port(), "HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 404 Not Found\r\nContent-Length: 8\r\nConnection: close\r\n\r\n");
}

TEST(Server, StreamToAnOldClientEndsWithTheConnection) {
  const auto server = Serve([](Exchange& x) {
    (void)x.Start({200, {}, ""});
    (void)x.Write("plain");
    (void)x.Finish();
  });
  EXPECT_EQ(Raw(server->port(), "GET / HTTP/1.0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nplain");
}

TEST(Server, StreamWithAKnownLengthIsNotChunked) {
  const auto server = Serve([](Exchange& x) {
    (void)x.Start({200, {{"Content-Length", "6"}}, ""});
    (void)x.Write("abc");
    (void)x.Write("def");
    (void)x.Finish();
  });
  EXPECT_EQ(Raw(server->port(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nabcdef");
}

TEST(Server, SaysContinueOnlyToAReader) {
  const auto server = Serve([](Exchange& x) {
    const bool read = x.request().path == "/read";
    const std::string body = read ? x.ReadAll().value_or("?") : "";
    x.CloseAfter();
    (void)x.Respond({200, {}, body});
  });
  const std::string head = " HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi";
  EXPECT_THAT(Raw(server->port(), "PUT /read" + head),
              StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Raw(server->port(), "PUT /not" + head), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(Server, DrainsASmallBodyAndLeavesALargeOne) {
  const auto server = Serve([](Exchange& x) { (void)x.Respond({200, {}, ""}); });
  const std::string small = "POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" +
                            std::string(1000, 'x') + "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
  const std::string both = Raw(server->port(), small);
  EXPECT_NE(both.find("200 OK"), both.rfind("200 OK"));
  // The answer arrives although megabytes were not read; then the connection ends.
  const std::string large =
      "POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + std::string(3'000'000, 'x');
  EXPECT_EQ(Raw(server->port(), large), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

TEST(Server, BoundsTheHead) {
  const auto server =
      Serve([](Exchange& x) { (void)x.Respond({200, {}, ""}); }, {.max_head_bytes = 1000});
  EXPECT_THAT(Raw(server->port(), "GET / HTTP/1.1\r\nA: " + std::string(2000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST(Server, EndsIdleConnections) {
  const auto server = Serve([](Exchange& x) { (void)x.Respond({200, {}, ""}); },
                            {.idle_timeout = absl::Milliseconds(30)});
  EXPECT_THAT(Raw(server->port(), "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK"));
}

TEST(Server, NoAnswerEndsTheConnection) {
  const auto server = Serve([](Exchange&) {});
  EXPECT_EQ(Raw(server->port(), "GET / HTTP/1.1\r\n\r\n"), "");
}

TEST(Server, ResetIsVisibleAsOne) {
  const auto server = Serve([](Exchange& x) { x.Reset(); });
  EXPECT_EQ(Raw(server->port(), "GET / HTTP/1.1\r\n\r\n"), "<read: Connection reset by peer>");
}

TEST(Server, HijackedConnectionsCarryAnyBytes) {
  const auto server = Serve([](Exchange& x) {
    std::string pending;
    Socket& socket = x.Hijack(&pending);
    (void)socket.Write("raw:" + pending);
  });
  EXPECT_EQ(Raw(server->port(), "GET / HTTP/1.1\r\n\r\nabc"), "raw:abc");
}

TEST(Server, DateAndLowerCaseHeaders) {
  ServerOptions options;
  options.lower_case_headers = true;
  options.unix_time = [] { return 784111777LL; };
  const auto server = Server::Start(options, [](Exchange& x) { (void)x.Respond({200, {}, ""}); });
  EXPECT_EQ(Raw((*server)->port(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\n"
            "connection: close\r\n\r\n");
}

TEST(Server, WriterNoticesThatItsReaderHasGone) {
  std::atomic<bool> ended{false};
  const auto server = Serve([&ended](Exchange& x) {
    (void)x.Start({200, {}, ""});
    const std::string piece(1000, 'x');
    while (x.Write(piece).ok()) {
    }
    ended = true;
  });
  {
    auto client = ClientExchange::Connect("127.0.0.1", server->port(), absl::Seconds(5));
    ASSERT_TRUE((*client)->SendHead("GET", "/", {}).ok());
    ASSERT_TRUE((*client)->ReadHead(absl::Seconds(5)).ok());
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (!ended && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(ended);
}

TEST(Server, RefusesMoreConnectionsThanAllowed) {
  const auto server =
      Serve([](Exchange& x) { x.Sleep(absl::InfiniteDuration()); }, {.max_connections = 1});
  auto first = ClientExchange::Connect("127.0.0.1", server->port(), absl::Seconds(5));
  ASSERT_TRUE((*first)->SendHead("GET", "/", {}).ok());
  while (server->connections() < 1) std::this_thread::yield();
  EXPECT_THAT(Raw(server->port(), "GET / HTTP/1.1\r\n\r\n"),
              ::testing::AnyOf("", HasSubstr("reset")));
}

TEST(Server, HoldsThousandsOfIdleStreams) {
  constexpr int kStreams = 2000;
  const auto server = Serve([](Exchange& x) {
    (void)x.Start({200, {}, ""});
    (void)x.Write("open");
    x.Sleep(absl::InfiniteDuration());
  });
  std::vector<std::unique_ptr<Socket>> clients;
  clients.reserve(kStreams);
  for (int i = 0; i < kStreams; ++i) {
    const auto fd = ConnectTcp("127.0.0.1", server->port(), absl::Seconds(10));
    ASSERT_TRUE(fd.ok()) << i << ": " << fd.status();
    clients.push_back(std::make_unique<Socket>(*fd));
    ASSERT_TRUE(clients.back()->Write("GET / HTTP/1.1\r\n\r\n").ok());
  }
  for (const auto& client : clients) {
    std::array<char, 200> bytes;
    const auto n = client->Read(bytes.data(), bytes.size(), absl::Seconds(10));
    ASSERT_TRUE(n.ok() && *n > 0);
  }
  EXPECT_EQ(server->connections(), static_cast<size_t>(kStreams));
  const absl::Time start = absl::Now();
  server->Stop();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST(Server, AddressInUseIsAnError) {
  const auto server = Serve([](Exchange&) {});
  ServerOptions options;
  options.port = server->port();
  EXPECT_TRUE(absl::IsUnavailable(Server::Start(options, [](Exchange&) {}).status()));
  EXPECT_EQ(server->url(), "http://127.0.0.1:" + std::to_string(server->port()));
}

TEST(Client, SkipsInformationalAnswersAndReportsEarlyEnds) {
  const auto server = Serve([](Exchange& x) {
    std::string pending;
    Socket& socket = x.Hijack(&pending);
    const bool cut = x.request().path == "/cut";
    (void)socket.Write(cut ? "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
                           : "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall");
  });
  const auto whole = Fetch("127.0.0.1", server->port(), "GET", "/");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->status, 200);
  EXPECT_EQ(whole->body, "all");
  EXPECT_TRUE(absl::IsUnavailable(Fetch("127.0.0.1", server->port(), "GET", "/cut").status()));
}

}  // namespace
}  // namespace bridge::local::http
