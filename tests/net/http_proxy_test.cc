// SPDX-License-Identifier: Apache-2.0
//
// Proxies of the environment: used when asked for, never for loopback, the same for WebSockets.
#include <cstdlib>
#include <memory>
#include <string>

#include "bridge/net/websocket.h"
#include "tests/fakes/websocket_peer.h"
#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Fails to resolve without asking anybody: no label may be so long.
std::string NoSuchHost() { return std::string(70, 'x') + ".test"; }

class HttpProxyTest : public HttpTest {
 protected:
  HttpProxyTest()
      : proxy_([this](RawConnection& peer) {
          request_ = peer.ReadHead();
          if (request_.rfind("CONNECT", 0) == 0) {
            peer.Write("HTTP/1.1 200 Connection established\r\nX-Proxy: 1\r\n\r\n");
            AcceptWebSocket(peer);
            peer.Write(EncodeFrame({.opcode = 1, .payload = "through"}));
            peer.AwaitClose();
          } else if (!request_.empty()) {
            peer.Write(Answer("from the proxy"));
          }
        }) {
    Set("http_proxy", "http://user:secret@127.0.0.1:" + std::to_string(proxy_.port()));
  }
  ~HttpProxyTest() override {
    for (const char* name : {"http_proxy", "no_proxy", "NO_PROXY"}) unsetenv(name);
  }
  static void Set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

  absl::StatusOr<HttpResponse> GetThrough(HttpClientOptions options, const std::string& url) {
    HttpClient client(loop_, std::move(options));
    return RunTask(loop_, [&] { return bridge::Fetch(client, {.url = url}, 1000); });
  }

  std::string request_;
  RawServer proxy_;
};

TEST_F(HttpProxyTest, IsUsedWhenAskedFor) {
  const auto response =
      GetThrough({.use_environment_proxy = true}, "http://" + NoSuchHost() + "/a?b");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "from the proxy");
  EXPECT_THAT(request_, StartsWith("GET http://" + NoSuchHost() + "/a?b HTTP/1.1\r\n"));
}

TEST_F(HttpProxyTest, IsIgnoredOtherwise) {
  EXPECT_THAT(GetThrough({}, "http://" + NoSuchHost() + "/"), FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_EQ(proxy_.accepted(), 0);
}

TEST_F(HttpProxyTest, LoopbackIsNeverProxied) {
  RawServer server([](RawConnection& peer) {
    if (!peer.ReadHead().empty()) peer.Write(Answer("direct"));
  });
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const auto response = GetThrough({.use_environment_proxy = true},
                                     "http://" + host + ":" + std::to_string(server.port()) + "/");
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "direct");
  }
  EXPECT_EQ(proxy_.accepted(), 0);
}

TEST_F(HttpProxyTest, NoProxyIsKept) {
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    for (const std::string list : {".test", "other, test", "*"}) {
      Set(name, list);
      EXPECT_THAT(GetThrough({.use_environment_proxy = true}, "http://" + NoSuchHost() + "/"),
                  FailsWith("UPSTREAM_UNAVAILABLE"))
          << list;
    }
    unsetenv(name);
  }
  EXPECT_EQ(proxy_.accepted(), 0);
}

TEST_F(HttpProxyTest, ADeadProxyIsNamedWithoutItsPassword) {
  const ClosedPort closed;
  Set("http_proxy", "http://user:secret@127.0.0.1:" + std::to_string(closed.port()));
  const auto response = GetThrough({.use_environment_proxy = true}, "http://" + NoSuchHost());
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(response.status().ToString(), Not(HasSubstr("secret")));
}

TEST_F(HttpProxyTest, WebSocketsGoThroughATunnel) {
  HttpClient client(loop_, {.use_environment_proxy = true});
  const std::string text = RunTask(loop_, [&]() -> Task<std::string> {
    WebSocket socket(client);
    const absl::Status connected = co_await socket.Connect("ws://" + NoSuchHost() + ":81/ws");
    EXPECT_TRUE(connected.ok()) << connected;
    WebSocketMessage message;
    (void)co_await socket.Read(&message);
    co_return message.data;
  });
  EXPECT_EQ(text, "through");
  EXPECT_THAT(request_, StartsWith("CONNECT " + NoSuchHost() + ":81 HTTP/1.1\r\n"));
}

}  // namespace
}  // namespace bridge
