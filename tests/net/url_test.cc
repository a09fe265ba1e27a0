// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/url.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge {
namespace {

TEST(Url, AllParts) {
  const auto url = ParseUrl("http://user:pw@Sandbox.Test:8080/a%20b/c?x=1&y=%2F#part");
  ASSERT_TRUE(url.has_value());
  EXPECT_EQ(url->scheme, "http");
  EXPECT_EQ(url->host, "Sandbox.Test");
  EXPECT_EQ(url->port, "8080");
  EXPECT_FALSE(url->default_port);
  EXPECT_EQ(url->target, "/a%20b/c?x=1&y=%2F");
}

TEST(Url, UsualPorts) {
  for (const auto& [text, port] : {std::pair("http://a/", "80"), std::pair("https://a", "443"),
                                   std::pair("ws://a/", "80"), std::pair("wss://a/", "443")}) {
    const auto url = ParseUrl(text);
    ASSERT_TRUE(url.has_value()) << text;
    EXPECT_EQ(url->port, port);
    EXPECT_TRUE(url->default_port);
    EXPECT_EQ(url->target, "/");
  }
  EXPECT_TRUE(ParseUrl("https://a:443/")->default_port);
  EXPECT_FALSE(ParseUrl("https://a:80/")->default_port);
}

TEST(Url, Ipv6KeepsItsBrackets) {
  EXPECT_EQ(HostAndPort("http://[::1]:9/"), "[::1]:9");
  EXPECT_EQ(HostAndPort("https://[fe80::1]/x"), "[fe80::1]:443");
}

TEST(Url, HostAndPortHasNoUserInfo) {
  EXPECT_EQ(HostAndPort("http://user:secret@h.test/secret?secret"), "h.test:80");
}

TEST(Url, WhatIsNoUrl) {
  for (const std::string text :
       {"", "no scheme", "/path", "http://", "http://a:99999/", "http://a b/", "http://a\r\nb/"}) {
    EXPECT_FALSE(ParseUrl(text).has_value()) << text;
    EXPECT_EQ(HostAndPort(text), "");
  }
  EXPECT_FALSE(ParseUrl(std::string("http://a/\0b", 11)).has_value());
}

}  // namespace
}  // namespace bridge
