// SPDX-License-Identifier: Apache-2.0
//
// Streams of bytes over curl's connections, plain and TLS, and a WebSocket on top of TLS.
#include "bridge/net/connection.h"

#include <string>

#include "bridge/net/websocket.h"
#include "tests/fakes/websocket_peer.h"
#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

class ConnectionTest : public HttpTest {
 protected:
  // Sends `request` and returns what comes until the end.
  std::string Exchange(HttpClient& client, const std::string& url, const std::string& request) {
    return RunTask(loop_, [&]() -> Task<std::string> {
      Connection connection(client);
      const absl::Status open = co_await connection.Open(url, absl::Seconds(5));
      EXPECT_TRUE(open.ok()) << open;
      std::string got;
      if (!open.ok()) co_return got;
      FdWatch watch(loop_, connection.fd());
      std::string_view left = request;
      bool alive = true;
      while (alive && !left.empty()) {
        size_t n = 0;
        const Connection::Io io = connection.TryWrite(left, &n);
        left.remove_prefix(n);
        alive = io != Connection::Io::kBroken;
        if (io == Connection::Io::kWouldBlock) alive = co_await watch.Writable();
      }
      while (alive) {
        char bytes[1000];
        size_t n = 0;
        const Connection::Io io = connection.TryRead(bytes, sizeof(bytes), &n);
        got.append(bytes, n);
        alive = io == Connection::Io::kOk || io == Connection::Io::kWouldBlock;
        if (io == Connection::Io::kWouldBlock) alive = co_await watch.Readable();
      }
      co_return got;
    });
  }
};

void EchoOnce(RawConnection& peer) {
  const std::string bytes = peer.Read(200'000);
  peer.Write(bytes);
  peer.EndWriting();
  peer.AwaitClose();
}

TEST_F(ConnectionTest, BytesGoBothWays) {
  RawServer server(EchoOnce);
  const std::string data(200'000, 'e');
  EXPECT_EQ(Exchange(client_, server.Url(), data), data);
}

TEST_F(ConnectionTest, BytesGoBothWaysOverTls) {
  const TestCertificate certificate;
  RawServer server(certificate, EchoOnce);
  HttpClient trusting(loop_, {.ca_bundle = certificate.pem()});
  const std::string data(200'000, 't');
  EXPECT_EQ(Exchange(trusting, server.Url(), data), data);
}

// Other transfers come and go, and curl tidies up its connections: this one stays.
TEST_F(ConnectionTest, SurvivesTheTrafficOfOthers) {
  RawServer http([](RawConnection& peer) {
    while (!peer.ReadHead().empty()) peer.Write(Answer("x"));
  });
  const SilentPort silent;
  RawServer server([](RawConnection& peer) { peer.Write(peer.Read(4)); });
  const std::string got = RunTask(loop_, [&]() -> Task<std::string> {
    Connection connection(client_);
    const absl::Status open = co_await connection.Open(server.Url(), absl::Seconds(5));
    EXPECT_TRUE(open.ok()) << open;
    for (int i = 0; i < 30; ++i) {
      Transfer aborted(client_, {.url = "http://127.0.0.1:" + std::to_string(silent.port()) + "/"});
      HttpRequest request{.method = i % 2 == 0 ? "GET" : "POST", .url = http.Url()};
      const auto response = co_await bridge::Fetch(client_, std::move(request), 100);
      EXPECT_TRUE(response.ok()) << response.status();
    }
    FdWatch watch(loop_, connection.fd());
    size_t n = 0;
    const Connection::Io sent = connection.TryWrite("ping", &n);
    EXPECT_EQ(sent, Connection::Io::kOk);
    char bytes[10];
    Connection::Io io = connection.TryRead(bytes, sizeof(bytes), &n);
    while (io == Connection::Io::kWouldBlock) {
      (void)co_await watch.Readable();
      io = connection.TryRead(bytes, sizeof(bytes), &n);
    }
    co_return std::string(bytes, n);
  });
  EXPECT_EQ(got, "ping");
}

TEST_F(ConnectionTest, FailuresAreTyped) {
  const ClosedPort closed;
  const TestCertificate certificate;
  RawServer tls(certificate, [](RawConnection&) {});
  const auto open = [this](const std::string& url) {
    return RunTask(loop_, [&]() -> Task<absl::Status> {
      Connection connection(client_);
      co_return co_await connection.Open(url, absl::Seconds(5));
    });
  };
  EXPECT_THAT(open("http://127.0.0.1:" + std::to_string(closed.port())),
              FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(open(tls.Url()), SaysInMessage("not trusted"));
}

// A WebSocket looks at trust, name and date as every other request does.
TEST_F(ConnectionTest, AWebSocketOverTlsToAStrangerIsRefused) {
  struct Case {
    TestCertificate::Options certificate;
    bool known;
    std::string_view says;
  };
  for (const Case& c : {Case{{}, false, "self-signed certificate"},
                        Case{{.names = "DNS:elsewhere.example"}, true, "subject name"},
                        Case{{.expires_in_seconds = -60}, true, "certificate has expired"}}) {
    const TestCertificate certificate(c.certificate);
    bool asked = false;
    RawServer server(certificate, [&](RawConnection& peer) { asked = !peer.ReadHead().empty(); });
    HttpClient client(loop_, {.ca_bundle = c.known ? certificate.pem() : ""});
    const absl::Status connected = RunTask(loop_, [&]() -> Task<absl::Status> {
      WebSocket socket(client);
      co_return co_await socket.Connect("wss://localhost:" + std::to_string(server.port()) + "/ws");
    });
    EXPECT_THAT(connected, FailsWith("UPSTREAM_UNAVAILABLE")) << c.says;
    EXPECT_THAT(connected, HasMetadata("phase", "connect")) << c.says;
    EXPECT_THAT(connected, SaysInMessage(std::string(c.says)));
    server.AwaitScripts();
    EXPECT_FALSE(asked) << "nothing was sent, in the clear or otherwise";
  }
}

TEST_F(ConnectionTest, AWebSocketOverTls) {
  const TestCertificate certificate;
  RawServer server(certificate, [](RawConnection& peer) {
    AcceptWebSocket(peer);
    for (int i = 0; i < 3; ++i) {
      const auto frame = ReadFrame(peer);
      if (!frame) return;
      peer.Write(EncodeFrame({.opcode = frame->opcode, .payload = frame->payload}));
    }
    peer.Write(EncodeFrame({.opcode = 8, .payload = ClosePayload(1000)}));
    peer.AwaitClose();
  });
  HttpClient trusting(loop_, {.ca_bundle = certificate.pem()});
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(trusting);
    const absl::Status connected =
        co_await socket.Connect("wss://localhost:" + std::to_string(server.port()) + "/ws");
    EXPECT_TRUE(connected.ok()) << connected;
    if (!connected.ok()) co_return;
    for (const size_t size : {size_t{5}, size_t{70'000}, size_t{3'000'000}}) {
      const std::string data(size, 'd');
      const bool sent = co_await socket.Write(WebSocketKind::kBinary, data);
      EXPECT_TRUE(sent);
      WebSocketMessage message;
      const bool got = co_await socket.Read(&message);
      EXPECT_TRUE(got);
      EXPECT_EQ(message.data, data);
    }
    WebSocketMessage message;
    const bool more = co_await socket.Read(&message);
    EXPECT_FALSE(more);
    EXPECT_EQ(socket.end().code, 1000);
  });
}

}  // namespace
}  // namespace bridge
