// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/endpoint.h"

#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"

namespace bridge {
namespace {

constexpr char kServer[] = "http://srv:8080/v1";

std::string UrlOf(std::string_view text, std::string_view server = kServer) {
  const auto endpoint = ParseEndpoint(text, {}, server, false);
  return endpoint.ok() ? endpoint->url : std::string(endpoint.status().message());
}

TEST(ParseEndpoint, MakesAnAbsoluteUrl) {
  EXPECT_EQ(UrlOf("h:1/proxy/44772"), "http://h:1/proxy/44772");
  EXPECT_EQ(UrlOf("h:1/proxy/44772", "https://srv/v1"), "https://h:1/proxy/44772");
  EXPECT_EQ(UrlOf("http://h:1", "https://srv/v1"), "http://h:1");
  EXPECT_EQ(UrlOf("https://h/p"), "https://h/p");
  EXPECT_EQ(UrlOf("HTTPS://h/p"), "https://h/p");
  EXPECT_EQ(UrlOf("//h:1"), "http://h:1");
  EXPECT_EQ(UrlOf("h"), "http://h");
  EXPECT_EQ(UrlOf("h:1/"), "http://h:1");
  EXPECT_EQ(UrlOf("h:1/p//"), "http://h:1/p");
  EXPECT_EQ(UrlOf("[fd00::7]:44772"), "http://[fd00::7]:44772");
  EXPECT_EQ(UrlOf("gw.example.com/d243/8000"), "http://gw.example.com/d243/8000");
}

TEST(ParseEndpoint, KeepsEveryHeader) {
  HttpHeaders headers{{"X-EXECD-ACCESS-TOKEN", "t"}, {"OpenSandbox-Ingress-To", "x-80"}};
  const auto endpoint = ParseEndpoint("h:1", headers, kServer, false);
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->headers.size(), 2u);
  EXPECT_EQ(endpoint->headers.Get("x-execd-access-token"), "t");
}

TEST(ParseEndpoint, RefusesWhatNobodyCanReach) {
  for (const char* text : {"", "/", "//", "///", "http://", "ftp://h", "h:0", "h:99999", "h:x",
                           "h 1", "h:1/a b", "h:1?q=1", "h:1#f", "u@h:1", ":80", "h:1/\n"}) {
    const auto endpoint = ParseEndpoint(text, {}, kServer, false);
    ASSERT_FALSE(endpoint.ok()) << text << " → " << endpoint->url;
    EXPECT_EQ(ReasonOf(endpoint.status()), ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL) << text;
  }
  EXPECT_FALSE(ParseEndpoint(std::string(5000, 'h'), {}, kServer, false).ok());
}

TEST(ParseEndpoint, TheKeyGoesToTheConfiguredServerOnly) {
  const auto through = [](std::string_view text, std::string_view server) {
    return ParseEndpoint(text, {}, server, true)->through_server;
  };
  EXPECT_TRUE(through("srv:8080/v1/sandboxes/x/proxy/44772", kServer));
  EXPECT_TRUE(through("SRV:8080/sandboxes/x/proxy/44772", kServer));
  EXPECT_TRUE(through("srv/sandboxes/x/proxy/1", "http://srv:80/v1"));
  EXPECT_FALSE(through("evil.example:8080/v1/sandboxes/x/proxy/44772", kServer));
  EXPECT_FALSE(through("srv:9999/v1/sandboxes/x/proxy/44772", kServer));
  EXPECT_FALSE(through("https://srv:8080/v1/sandboxes/x/proxy/44772", kServer));
  EXPECT_FALSE(ParseEndpoint("srv:8080/x", {}, kServer, false)->through_server);
}

TEST(WithoutExecdProxy, CutsTheDetourAndNothingElse) {
  const auto cut = [](std::string url, bool through = false) {
    return WithoutExecdProxy({.url = std::move(url), .through_server = through}).url;
  };
  EXPECT_EQ(cut("http://127.0.0.1:44064/proxy/44772"), "http://127.0.0.1:44064");
  EXPECT_EQ(cut("https://h/proxy/44772"), "https://h");
  EXPECT_EQ(cut("http://h:1/proxy/8000"), "http://h:1/proxy/8000");
  EXPECT_EQ(cut("http://h:1/gw/proxy/44772"), "http://h:1/gw/proxy/44772");
  EXPECT_EQ(cut("http://srv/v1/sandboxes/x/proxy/44772"), "http://srv/v1/sandboxes/x/proxy/44772");
  EXPECT_EQ(cut("http://h/proxy/44772", true), "http://h/proxy/44772");
  EXPECT_EQ(cut("http://h:1"), "http://h:1");
  EXPECT_EQ(cut("/proxy/44772"), "/proxy/44772");
  EXPECT_EQ(cut(""), "");
}

TEST(WithoutExecdProxy, KeepsHeaders) {
  const Endpoint endpoint =
      WithoutExecdProxy({.url = "http://h:1/proxy/44772", .headers = {{"X-A", "1"}}});
  EXPECT_EQ(endpoint.headers.Get("x-a"), "1");
}

TEST(WebSocketUrl, FollowsTheScheme) {
  EXPECT_EQ(WebSocketUrl("http://h:1/p"), "ws://h:1/p");
  EXPECT_EQ(WebSocketUrl("https://h"), "wss://h");
  EXPECT_EQ(WebSocketUrl("ws://h"), "ws://h");
}

}  // namespace
}  // namespace bridge
