// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddress, ParsesTheFormsThatPeopleWrite) {
  struct Case {
    const char* text;
    const char* host;
    int port;
    bool local;
  };
  for (const Case& c : {
           Case{"127.0.0.1:50051", "127.0.0.1", 50051, true},
           Case{"127.9.9.9:1", "127.9.9.9", 1, true},
           Case{"localhost:0", "localhost", 0, true},
           Case{"[::1]:8080", "::1", 8080, true},
           Case{"0.0.0.0:80", "0.0.0.0", 80, false},
           Case{"[::]:80", "::", 80, false},
           Case{"10.1.2.3:65535", "10.1.2.3", 65535, false},
           Case{"[2001:db8::1]:1", "2001:db8::1", 1, false},
           Case{"128.0.0.1:1", "128.0.0.1", 1, false},
           Case{"bridge.example:50051", "bridge.example", 50051, false},
           Case{"localhost.example:1", "localhost.example", 1, false},
           Case{"[::ffff:10.0.0.1]:1", "::ffff:10.0.0.1", 1, false},
       }) {
    const auto address = ParseListenAddress(c.text, "listen");
    ASSERT_TRUE(address.ok()) << c.text << ": " << address.status();
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
    EXPECT_EQ(address->local(), c.local) << c.text;
    EXPECT_FALSE(address->unix_socket);
    EXPECT_EQ(address->ToString(), c.text);
  }
}

TEST(ListenAddress, ParsesSocketFiles) {
  const auto address = ParseListenAddress("unix:/run/bridge.sock", "listen");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->unix_socket);
  EXPECT_TRUE(address->local());
  EXPECT_EQ(address->ToString(), "unix:/run/bridge.sock");
}

TEST(ListenAddress, RefusesTheRestNamingTheFlag) {
  for (const std::string& text :
       {std::string(""), std::string("50051"), std::string(":50051"), std::string("host"),
        std::string("host:"), std::string("host:x"), std::string("host:-1"),
        std::string("host:65536"), std::string("host:80x"), std::string("::1:80"),
        std::string("[host]:80"), std::string("[]:80"), std::string("unix:"), std::string("unix:/"),
        std::string("unix:relative.sock"), "unix:/" + std::string(107, 'a'),
        std::string("host:1 ")}) {
    const auto address = ParseListenAddress(text, "admin_listen");
    EXPECT_FALSE(address.ok()) << text;
    EXPECT_EQ(ReasonOf(address.status()), ErrorReason::ERROR_REASON_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(address.status().message()), HasSubstr("admin_listen"));
  }
}

TEST(ListenAddress, AListIsOneOrMore) {
  const auto list = ParseListenAddresses("127.0.0.1:1,[::1]:2,unix:/x/y", "listen");
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[1].host, "::1");
  EXPECT_FALSE(ParseListenAddresses("", "listen").ok());
  EXPECT_FALSE(ParseListenAddresses("127.0.0.1:1,", "listen").ok());
}

TEST(WhyNotBound, SaysWhatTheSystemSays) {
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  socklen_t length = sizeof address;
  getsockname(taken, reinterpret_cast<sockaddr*>(&address), &length);

  const int port = ntohs(address.sin_port);
  EXPECT_EQ(WhyNotBound({.host = "127.0.0.1", .port = port}), "Address already in use");
  EXPECT_EQ(WhyNotBound({.host = "localhost", .port = port}), "Address already in use");
  ::close(taken);
  EXPECT_EQ(WhyNotBound({.host = "127.0.0.1", .port = port}), "");
  EXPECT_EQ(WhyNotBound({.host = "192.0.2.1", .port = 0}), "Cannot assign requested address");
  EXPECT_EQ(WhyNotBound({.host = "/no/such/folder/x", .unix_socket = true}),
            "No such file or directory");
}

}  // namespace
}  // namespace bridge
