// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/websocket_handshake.h"

#include <string>

#include "absl/strings/escaping.h"
#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kUrl = "http://sandbox.test:8080/pty/1/ws?pty=0";

HttpHead Head(const std::string& text) {
  const auto head = ParseResponseHead(text);
  EXPECT_TRUE(head.has_value()) << text;
  return head.value_or(HttpHead());
}

// RFC 6455, section 1.3.
TEST(WebSocketHandshake, AcceptOfTheRfcsExample) {
  EXPECT_EQ(WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketHandshake, KeysAreSixteenBytesAndDiffer) {
  const std::string key = MakeWebSocketKey();
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(key, &bytes));
  EXPECT_EQ(bytes.size(), 16u);
  EXPECT_NE(key, MakeWebSocketKey());
}

TEST(WebSocketHandshake, RequestHasWhatTheRfcWants) {
  const std::string request = UpgradeRequest(*ParseUrl(kUrl), {{"X-Key", "k"}}, "abc");
  EXPECT_EQ(request,
            "GET /pty/1/ws?pty=0 HTTP/1.1\r\nHost: sandbox.test:8080\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: abc\r\n"
            "X-Key: k\r\n\r\n");
}

TEST(WebSocketHandshake, HostLeavesOutTheUsualPortAndUserInfo) {
  EXPECT_THAT(UpgradeRequest(*ParseUrl("https://user:pw@h.test/x"), {}, "k"),
              HasSubstr("\r\nHost: h.test\r\n"));
  EXPECT_THAT(UpgradeRequest(*ParseUrl("http://[::1]:81/x"), {}, "k"),
              HasSubstr("\r\nHost: [::1]:81\r\n"));
  const std::string own = UpgradeRequest(*ParseUrl("http://a.test/"), {{"host", "b.test"}}, "k");
  EXPECT_THAT(own, HasSubstr("host: b.test\r\n"));
  EXPECT_THAT(own, Not(HasSubstr("a.test")));
}

TEST(WebSocketHandshake, ParsesHeads) {
  const HttpHead head = Head("HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nx:y");
  EXPECT_EQ(head.status, 101);
  EXPECT_EQ(head.headers.Get("upgrade"), "WebSocket");
  EXPECT_EQ(head.headers.Get("X"), "y");
  EXPECT_EQ(Head("HTTP/1.0 404").status, 404);
}

TEST(WebSocketHandshake, RefusesWhatIsNoHead) {
  for (const std::string text :
       {"", "HTTP/2 101 x", "HTTP/1.1", "HTTP/1.1 1x1 no", "HTTP/1.1 099 low", "HTTP/1.1-101 x",
        "SSH-2.0-OpenSSH_9.2", "HTTP/1.1 200 OK\r\nno colon", "HTTP/1.1 200 OK\r\n: no name"}) {
    EXPECT_FALSE(ParseResponseHead(text).has_value()) << text;
  }
}

TEST(WebSocketHandshake, ChecksTheAnswer) {
  const std::string key = "dGhlIHNhbXBsZSBub25jZQ==";
  const std::string accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
  const std::string start = "HTTP/1.1 101 x\r\n";
  const std::string upgrade = "Upgrade: WebSocket\r\n";
  const std::string connection = "Connection: keep-alive, Upgrade\r\n";
  const auto check = [&](const std::string& text) { return CheckUpgrade(kUrl, Head(text), key); };
  EXPECT_TRUE(check(start + upgrade + connection + accept).ok());
  EXPECT_THAT(check(start + connection + accept), FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(check(start + upgrade + accept), FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(check(start + upgrade + connection), SaysInMessage("wrong Sec-WebSocket-Accept"));
  EXPECT_THAT(check(start + upgrade + connection + "Sec-WebSocket-Accept: x\r\n"),
              FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(check(start + upgrade + connection + accept + "Sec-WebSocket-Extensions: deflate"),
              SaysInMessage("extension"));
  const absl::Status refused = check("HTTP/1.1 403 no\r\n");
  EXPECT_THAT(refused, FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(refused, HasMetadata("upstream_status", "403"));
  EXPECT_THAT(refused, HasMetadata("host", "sandbox.test:8080"));
}

TEST(WebSocketHandshake, DecodesChunksAsFarAsTheyCame) {
  const std::string coded = "4;x=1\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n";
  bool complete = false;
  EXPECT_EQ(DecodeChunks(coded, &complete), "Wikipedia");
  EXPECT_TRUE(complete);
  for (size_t cut = 0; cut < coded.size(); ++cut) {
    const std::string got = DecodeChunks(coded.substr(0, cut), &complete);
    EXPECT_THAT(std::string("Wikipedia"), StartsWith(got));
    EXPECT_EQ(complete, cut >= coded.find("0\r\n\r\n") + 3) << cut;
  }
  EXPECT_EQ(DecodeChunks("zz\r\nabc", &complete), "");
  EXPECT_TRUE(complete);
  EXPECT_EQ(DecodeChunks("ffffffffffffffffff\r\nabc", &complete), "");
  EXPECT_TRUE(complete);
}

}  // namespace
}  // namespace bridge
