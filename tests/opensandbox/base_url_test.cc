// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/base_url.h"

#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"

namespace bridge {
namespace {

TEST(ParseBaseUrl, EverySpellingLeadsToTheSameApi) {
  const struct {
    const char* text;
    const char* api;
  } kCases[] = {
      {"http://h:1", "http://h:1/v1"},
      {"http://h:1/", "http://h:1/v1"},
      {"http://h:1/v1", "http://h:1/v1"},
      {"http://h:1/v1/", "http://h:1/v1"},
      {"http://h:1/v1//", "http://h:1/v1"},
      {"http://h:1//v1", "http://h:1/v1"},
      {"http://h:1/gw/osb", "http://h:1/gw/osb/v1"},
      {"http://h:1/gw/osb/v1/", "http://h:1/gw/osb/v1"},
      {"http://h:1/V1", "http://h:1/v1"},
      {"h:1", "http://h:1/v1"},
      {"h", "http://h/v1"},
      {"h/gw", "http://h/gw/v1"},
      {"HTTP://H:1", "http://h:1/v1"},
      {"https://osb.example.com", "https://osb.example.com/v1"},
      {"http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"},
      {"http://[::1]:8080/", "http://[::1]:8080/v1"},
      {"http://h:1/gwv1", "http://h:1/gwv1/v1"},
  };
  for (const auto& c : kCases) {
    const auto url = ParseBaseUrl(c.text);
    ASSERT_TRUE(url.ok()) << c.text << ": " << url.status();
    EXPECT_EQ(url->api, c.api) << c.text;
    EXPECT_EQ(url->root + "/v1", url->api);
  }
  EXPECT_EQ(ParseBaseUrl("HTTP://H:1/gw/v1/")->root, "http://h:1/gw");
  EXPECT_EQ(ParseBaseUrl("HTTP://H:1/gw/v1/")->host, "h:1");
}

TEST(ParseBaseUrl, RefusesTheRestWithTheReason) {
  const struct {
    const char* text;
    const char* problem;
  } kCases[] = {
      {"", "must not be empty"},
      {"ftp://h", "http or https"},
      {"unix:///run/osb.sock", "http or https"},
      {"http://CANARYuser:CANARYpass@h", "credentials"},
      {"u@h:1", "credentials"},
      {"http://h:1/?q=1", "query"},
      {"http://h:1#f", "query or a fragment"},
      {"http://", "host"},
      {"http:///v1", "host"},
      {"http://h:0", "host and port"},
      {"http://h:65536", "host and port"},
      {"http://h:80x", "host and port"},
      {"http://h:", "host and port"},
      {"http://h h", "host and port"},
      {"http://[::1", "host and port"},
      {"http://h:1/../x", "dot segments"},
      {"http://h:1/a b", "blanks"},
      {" http://h:1", "http or https"},
      {"http://h:1/\n", "blanks"},
  };
  for (const auto& c : kCases) {
    const auto url = ParseBaseUrl(c.text, "base_url");
    ASSERT_FALSE(url.ok()) << c.text;
    const std::string message(url.status().message());
    EXPECT_EQ(ReasonOf(url.status()), ErrorReason::ERROR_REASON_INVALID_ARGUMENT) << c.text;
    EXPECT_NE(message.find(c.problem), std::string::npos) << c.text << ": " << message;
    EXPECT_EQ(message.find("base_url: "), 0u) << message;
    EXPECT_EQ(message.find("CANARY"), std::string::npos) << message;
  }
  EXPECT_FALSE(ParseBaseUrl("http://" + std::string(3000, 'h')).ok());
}

TEST(OriginOf, ComparesServers) {
  EXPECT_EQ(OriginOf("http://H"), "http://h:80");
  EXPECT_EQ(OriginOf("http://h:80/v1/x?y"), "http://h:80");
  EXPECT_EQ(OriginOf("https://h/x"), "https://h:443");
  EXPECT_EQ(OriginOf("wss://h/x"), "https://h:443");
  EXPECT_EQ(OriginOf("ws://h:8080"), "http://h:8080");
  EXPECT_EQ(OriginOf("http://[::1]:8080/x"), "http://[::1]:8080");
  EXPECT_NE(OriginOf("http://h"), OriginOf("https://h"));
  // A name in front of an @ is not the host.
  EXPECT_EQ(OriginOf("http://h:80@evil/"), "");
  for (const char* url : {"", "h:1", "ftp://h", "http://", "//h:1"}) EXPECT_EQ(OriginOf(url), "");
}

TEST(EncodeSegment, NeverLeavesTheSegment) {
  EXPECT_EQ(EncodeSegment("d243afda-1877_x.~"), "d243afda-1877_x.~");
  EXPECT_EQ(EncodeSegment("a/b"), "a%2Fb");
  EXPECT_EQ(EncodeSegment("a%2Fb"), "a%252Fb");
  EXPECT_EQ(EncodeSegment("a?x=1#f"), "a%3Fx%3D1%23f");
  EXPECT_EQ(EncodeSegment(".."), "%2E%2E");
  EXPECT_EQ(EncodeSegment("."), "%2E");
  EXPECT_EQ(EncodeSegment("A B\n"), "A%20B%0A");
  EXPECT_EQ(EncodeSegment("\xc3\xbc"), "%C3%BC");
  EXPECT_EQ(EncodeSegment(std::string("\0", 1)), "%00");
}

}  // namespace
}  // namespace bridge
