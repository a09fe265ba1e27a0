// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/server/http_get.h"

namespace bridge::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kLoopback[] = "127.0.0.1";

std::unique_ptr<AdminServer> StartServer() {
  auto server = AdminServer::Start(
      {.host = kLoopback},
      {{"/metrics", [] { return AdminAnswer{.body = "m 1\n", .content_type = "text/x"}; }},
       {"/readyz", [] { return AdminAnswer{.status = 503, .body = "not ready\n"}; }}});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(AdminServer, ServesItsPathsOnTheGivenPort) {
  const auto server = StartServer();
  ASSERT_GT(server->port(), 0);
  const std::string metrics = HttpGet(server->port(), "/metrics");
  EXPECT_THAT(metrics, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(metrics, HasSubstr("Content-Type: text/x\r\n"));
  EXPECT_THAT(metrics, HasSubstr("\r\n\r\nm 1\n"));
  EXPECT_THAT(HttpGet(server->port(), "/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(HttpGet(server->port(), "/metrics?x=1"), StartsWith("HTTP/1.1 200 "));
}

TEST(AdminServer, AnswersHeadWithoutABody) {
  const auto server = StartServer();
  const std::string head = HttpGet(server->port(), "/metrics", "HEAD");
  EXPECT_THAT(head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("m 1")));
}

TEST(AdminServer, HasNoOtherPathsFilesOrMethods) {
  const auto server = StartServer();
  for (const char* path : {"/", "/metrics/", "/etc/passwd", "/../etc/passwd", "/%2e%2e/etc/passwd",
                           "/healthz", "//metrics/x"}) {
    EXPECT_THAT(HttpGet(server->port(), path), Not(HasSubstr("root:"))) << path;
    EXPECT_THAT(HttpGet(server->port(), path), Not(StartsWith("HTTP/1.1 200"))) << path;
  }
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    EXPECT_THAT(HttpGet(server->port(), "/metrics", method), StartsWith("HTTP/1.1 405 ")) << method;
  }
}

TEST(AdminServer, SurvivesGarbage) {
  const auto server = StartServer();
  SendRaw(server->port(), "\r\n\r\n");
  SendRaw(server->port(), std::string("\x16\x03\x01\x00\xff", 5) + "\r\n\r\n");
  SendRaw(server->port(), "GET " + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n");
  EXPECT_THAT(HttpGet(server->port(), "/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(AdminServer, SaysWhyItCannotListen) {
  const auto first = StartServer();
  const auto second = AdminServer::Start({.host = kLoopback, .port = first->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("admin_listen"));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("Address already in use"));
  EXPECT_FALSE(AdminServer::Start({.host = "/x", .unix_socket = true}, {}).ok());
}

TEST(AdminServer, LocalhostIsTheLoopback) {
  const auto server =
      AdminServer::Start({.host = "localhost"}, {{"/x", [] { return AdminAnswer{.body = "y"}; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(HttpGet((*server)->port(), "/x"), HasSubstr("\r\n\r\ny"));
}

}  // namespace
}  // namespace bridge::testing
