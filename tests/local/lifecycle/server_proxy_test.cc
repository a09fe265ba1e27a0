// SPDX-License-Identifier: Apache-2.0
//
// The WebSocket side of the proxy route, and streams that are cut: the numbers and texts are those
// of the recordings sp-ws-* and stream-cut-server-proxy.
#include "bridge/local/lifecycle/server_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/local/http/client.h"
#include "bridge/local/http/server.h"
#include "bridge/local/local_opensandbox.h"

namespace bridge::local::lifecycle {
namespace {

using http::Exchange;
using http::WebSocket;
using ::testing::HasSubstr;

struct WsClient {
  std::unique_ptr<http::ClientExchange> connection;
  std::unique_ptr<WebSocket> ws;
  http::Parser::Head head;
};

class ServerProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LocalOptions options;
    options.api_key = "key";
    auto local = LocalOpenSandbox::Start(options);
    ASSERT_TRUE(local.ok()) << local.status();
    local_ = *std::move(local);
    id_ = Create({"tail", "-f", "/dev/null"});
  }

  void Backend(http::Handler handler) { backend_ = *http::Server::Start({}, std::move(handler)); }

  std::string Create(const std::vector<std::string>& entrypoint) {
    const Json body = {{"image", {{"uri", "base"}}},
                       {"entrypoint", entrypoint},
                       {"resourceLimits", Json::object()}};
    const auto response = http::Fetch("127.0.0.1", local_->port(), "POST", "/v1/sandboxes",
                                      {{"OPEN-SANDBOX-API-KEY", "key"}}, body.dump());
    EXPECT_EQ(response->status, 202) << response->body;
    return Json::parse(response->body)["id"];
  }

  int Delete(const std::string& id) {
    return http::Fetch("127.0.0.1", local_->port(), "DELETE", "/v1/sandboxes/" + id,
                       {{"OPEN-SANDBOX-API-KEY", "key"}})
        ->status;
  }

  std::string PathTo(const std::string& id, int port, const std::string& path) {
    return "/v1/sandboxes/" + id + "/proxy/" + std::to_string(port) + path;
  }

  // Without a key, as everybody can.
  WsClient Dial(const std::string& target, const http::Headers& more = {}) {
    WsClient client;
    client.connection =
        *http::ClientExchange::Connect("127.0.0.1", local_->port(), absl::Seconds(5));
    http::Headers headers = {{"Host", "h"},
                             {"Upgrade", "websocket"},
                             {"Connection", "Upgrade"},
                             {"Sec-WebSocket-Version", "13"},
                             {"Sec-WebSocket-Key", http::WebSocketKey()}};
    for (const auto& [name, value] : more) headers.Add(name, value);
    EXPECT_TRUE(client.connection->SendHead("GET", target, headers).ok());
    const auto head = client.connection->ReadHead(absl::Seconds(10));
    EXPECT_TRUE(head.ok()) << head.status();
    client.head = *head;
    client.ws = client.connection->TakeWebSocket({});
    return client;
  }

  // The close code and text that a connection ends with.
  static std::pair<int, std::string> Ending(WsClient& client) {
    while (client.ws->Read(absl::Seconds(10)).ok()) {
    }
    return {client.ws->close_code(), client.ws->close_reason()};
  }

  std::unique_ptr<LocalOpenSandbox> local_;
  std::unique_ptr<http::Server> backend_;
  std::string id_;
};

TEST_F(ServerProxyTest, PassesMessagesProtocolsAndCloses) {
  std::string path;
  Backend([&path](Exchange& x) {
    path = x.request().target;
    EXPECT_EQ(x.request().headers.Get("sec-websocket-protocol"), "chat");
    EXPECT_EQ(x.request().headers.Get("x-mine"), "1");
    EXPECT_FALSE(x.request().headers.Has("cookie"));
    auto ws = x.AcceptWebSocket({}, {{"Sec-WebSocket-Protocol", "chat"}});
    while (true) {
      auto message = (*ws)->Read();
      if (!message.ok()) return;
      if (message->data == "end") {
        (void)(*ws)->Close(4001, "TAKEN_OVER");
        continue;
      }
      (void)(*ws)->Write(message->kind, message->data);
    }
  });
  WsClient client = Dial(PathTo(id_, backend_->port(), "/a%20b?x=%20"),
                         {{"Sec-WebSocket-Protocol", "chat"}, {"X-Mine", "1"}, {"Cookie", "c"}});
  EXPECT_EQ(client.head.headers.Get("sec-websocket-protocol"), "chat");
  EXPECT_EQ(client.head.headers.Get("server"), "uvicorn");
  ASSERT_TRUE(client.ws->WriteText("hello").ok());
  auto echoed = client.ws->Read(absl::Seconds(5));
  EXPECT_EQ(echoed->data, "hello");
  EXPECT_EQ(echoed->kind, WebSocket::Kind::kText);
  const std::string bytes(100'000, '\xff');
  ASSERT_TRUE(client.ws->WriteBinary(bytes).ok());
  echoed = client.ws->Read(absl::Seconds(5));
  EXPECT_EQ(echoed->data, bytes);
  EXPECT_EQ(echoed->kind, WebSocket::Kind::kBinary);
  ASSERT_TRUE(client.ws->WriteText("end").ok());
  EXPECT_EQ(Ending(client), std::pair(4001, std::string("TAKEN_OVER")));
  EXPECT_EQ(path, "/a%20b?x=%20");
}

TEST_F(ServerProxyTest, ClientsCloseReachesTheBackendAndIsAnsweredInFull) {
  std::atomic<int> code{0};
  Backend([&code](Exchange& x) {
    auto ws = x.AcceptWebSocket();
    (void)(*ws)->Read();
    code = (*ws)->close_code();
  });
  WsClient client = Dial(PathTo(id_, backend_->port(), "/"));
  ASSERT_TRUE(client.ws->Close(1000, "bye").ok());
  EXPECT_EQ(Ending(client), std::pair(1000, std::string("bye")));
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (code == 0 && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(code, 1000);
}

TEST_F(ServerProxyTest, RefusedHandshakesLookAcceptedFirst) {
  Backend([](Exchange& x) { (void)x.Respond({404, {}, "{}"}); });
  WsClient refused = Dial(PathTo(id_, backend_->port(), "/pty/nope/ws"));
  EXPECT_EQ(refused.head.status, 101);
  EXPECT_EQ(Ending(refused), std::pair(1008, std::string()));

  const int port = backend_->port();
  backend_ = nullptr;
  WsClient closed = Dial(PathTo(id_, port, "/ws"));
  EXPECT_EQ(Ending(closed), std::pair(1011, std::string()));

  WsClient unknown = Dial(PathTo("nope", 44772, "/pty/x/ws"));
  EXPECT_EQ(Ending(unknown),
            std::pair(1011, std::string("{'code': 'DOCKER::SANDBOX_NOT_FOUND', 'message': 'Sandbox "
                                        "nope not found.'}")));
}

TEST_F(ServerProxyTest, EndedSandboxIs1011WithItsReason) {
  const std::string ended = Create({"sh", "-c", "exit 3"});
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  std::pair<int, std::string> ending;
  do {
    WsClient client = Dial(PathTo(ended, 44772, "/pty/x/ws"));
    ending = Ending(client);
  } while (ending.second.empty() && absl::Now() < deadline);
  EXPECT_EQ(ending.first, 1011);
  EXPECT_EQ(
      ending.second,
      "{'code': 'DOCKER::NETWORK_MODE_ENDPOINT_UNAVAILABLE', 'message': 'Container is running "
      "but has no assigned IP address.'}");
}

TEST_F(ServerProxyTest, BackendThatDiesIs1011) {
  Backend([](Exchange& x) {
    auto ws = x.AcceptWebSocket();
    (void)(*ws)->WriteText("up");
    x.socket().Shutdown();
  });
  WsClient client = Dial(PathTo(id_, backend_->port(), "/"));
  EXPECT_EQ(client.ws->Read(absl::Seconds(5))->data, "up");
  EXPECT_EQ(Ending(client), std::pair(1011, std::string()));
}

TEST_F(ServerProxyTest, StreamCutByADeleteLooksComplete) {
  auto client = http::ClientExchange::Connect("127.0.0.1", local_->port(), absl::Seconds(5));
  const std::string body = R"({"command":"echo alive; sleep 30"})";
  ASSERT_TRUE((*client)
                  ->SendHead("POST", PathTo(id_, 44772, "/command"),
                             {{"Content-Length", std::to_string(body.size())}})
                  .ok());
  ASSERT_TRUE((*client)->SendBody(body, false).ok());
  ASSERT_TRUE((*client)->ReadHead(absl::Seconds(10)).ok());
  std::string got;
  std::array<char, 4096> piece;
  bool deleted = false;
  while (true) {
    const auto n = (*client)->ReadBody(piece.data(), piece.size(), absl::Seconds(10));
    ASSERT_TRUE(n.ok()) << n.status() << " after " << got;
    if (*n == 0) break;
    got.append(piece.data(), *n);
    if (!deleted && got.find("alive") != std::string::npos) {
      EXPECT_EQ(Delete(id_), 204);
      deleted = true;
    }
  }
  EXPECT_THAT(got, HasSubstr("alive"));
  EXPECT_THAT(got, ::testing::Not(HasSubstr("execution_complete")));
}

TEST_F(ServerProxyTest, ClientsDisconnectEndsTheSessionRun) {
  std::atomic<bool> noticed{false};
  Backend([&noticed](Exchange& x) {
    (void)x.Start({200, {}, ""});
    (void)x.Write("x");
    noticed = x.socket().WaitPeerClosed(absl::Seconds(10));
  });
  {
    auto client = http::ClientExchange::Connect("127.0.0.1", local_->port(), absl::Seconds(5));
    ASSERT_TRUE((*client)->SendHead("GET", PathTo(id_, backend_->port(), "/"), {}).ok());
    ASSERT_TRUE((*client)->ReadHead(absl::Seconds(5)).ok());
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (!noticed && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(noticed);
}

TEST(RebuildPath, AsRecorded) {
  EXPECT_EQ(RebuildPath(""), "/");
  EXPECT_EQ(RebuildPath("hello"), "/hello");
  EXPECT_EQ(RebuildPath("a/b?c%d e"), "/a/b?c%d%20e");
  EXPECT_EQ(RebuildPath("/a//./b"), "/a//b");
  EXPECT_EQ(RebuildPath("a/../x"), "/x");
  EXPECT_EQ(RebuildPath("../../x"), "/x");
  EXPECT_EQ(RebuildPath("a/"), "/a/");
  EXPECT_EQ(RebuildPath("ü#"), "/%C3%BC%23");
}

TEST(OpenPath, NeedsDigitsAndNoDots) {
  for (const char* open : {"/v1/sandboxes/x/proxy/80", "/sandboxes/x/proxy/80/",
                           "/v1/sandboxes/x/proxy/44772/command"}) {
    EXPECT_TRUE(IsOpenProxyPath(open)) << open;
  }
  for (const char* closed :
       {"/v1/sandboxes/x/proxy/abc/", "/v1/sandboxes/x/proxy/", "/v1/sandboxes/x/proxy/80x",
        "/v1/sandboxes/x/proxy/80/../x", "/v1/sandboxes//proxy/80", "/v1/sandboxes/x/y/proxy/80",
        "/v2/sandboxes/x/proxy/80", "/v1/sandboxes/x", "/v1"}) {
    EXPECT_FALSE(IsOpenProxyPath(closed)) << closed;
  }
}

}  // namespace
}  // namespace bridge::local::lifecycle
