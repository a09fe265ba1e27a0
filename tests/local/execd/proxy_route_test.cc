// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/proxy_route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bridge/local/http/server.h"
#include "tests/local/execd/daemon_fixture.h"

namespace bridge::local::execd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProxyTarget, FollowsThePort) {
  EXPECT_EQ(ProxyTarget("/proxy/8000", ""), "/");
  EXPECT_EQ(ProxyTarget("/proxy/8000/", ""), "/");
  EXPECT_EQ(ProxyTarget("/proxy/8000/hello", "x=1&z=%2F"), "/hello?x=1&z=%2F");
  EXPECT_EQ(ProxyTarget("/proxy/8000/a%2Fb%3Fc%25d%20e", ""), "/a/b%3Fc%25d%20e");
  EXPECT_EQ(ProxyTarget("/proxy/8000/proxy/44772/ping", ""), "/proxy/44772/ping");
  EXPECT_EQ(ProxyTarget("/proxy/8000//x", ""), "//x");
}

// Answers with what it was asked; some paths do more.
void Echo(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  if (request.path == "/die") return;
  if (request.path == "/stream") {
    ASSERT_TRUE(exchange.Start({200, {{"Content-Type", "text/event-stream"}}, ""}).ok());
    for (const char* piece : {"data: 0\n\n", "data: 1\n\n"}) (void)exchange.Write(piece);
    (void)exchange.Finish();
    return;
  }
  if (request.path == "/ws" && exchange.IsWebSocket()) {
    auto socket = exchange.AcceptWebSocket();
    ASSERT_TRUE(socket.ok());
    while (true) {
      const auto message = (*socket)->Read(kLong);
      if (!message.ok()) return;
      (void)(*socket)->WriteText("echo " + message->data);
    }
  }
  std::string text = request.method + " " + request.target + "\n";
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\n";
  text += *exchange.ReadAll();
  (void)exchange.Respond({200,
                          {{"X-Second", "2"},
                           {"Set-Cookie", "a=1"},
                           {"Set-Cookie", "b=2"},
                           {"Connection", "keep-alive, X-Hop"},
                           {"X-Hop", "gone"}},
                          text});
}

class ProxyRouteTest : public testing::Test {
 protected:
  void SetUp() override {
    auto backend = http::Server::Start({}, Echo);
    ASSERT_TRUE(backend.ok());
    backend_ = *std::move(backend);
    prefix_ = "/proxy/" + std::to_string(backend_->port());
    daemon_ = StartDaemon({.known_port = 44772});
    caller_ = std::make_unique<Caller>(*daemon_);
  }

  std::unique_ptr<http::Server> backend_;
  std::string prefix_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Caller> caller_;
};

TEST_F(ProxyRouteTest, PassesOnWhatIsEndToEnd) {
  const auto answer = caller_->Call("PUT", prefix_ + "/m?a=%zz", "body",
                                    {{"x-custom", "kept"},
                                     {"Cookie", "c=mine"},
                                     {"Authorization", "Bearer x"},
                                     {"Te", "trailers"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, testing::StartsWith("PUT /m?a=%zz\nHost: 127.0.0.1:"));
  EXPECT_THAT(answer.body, HasSubstr("X-Custom: kept\n"));
  EXPECT_THAT(answer.body, HasSubstr("Cookie: c=mine\n"));
  EXPECT_THAT(answer.body, HasSubstr("Authorization: Bearer x\n"));
  EXPECT_THAT(answer.body, HasSubstr("X-Forwarded-Proto: http\n"));
  EXPECT_THAT(answer.body,
              testing::ContainsRegex("X-Forwarded-For: 127.0.0.1:[0-9]+, 127.0.0.1\n"));
  EXPECT_THAT(answer.body, Not(HasSubstr("Te: ")));
  EXPECT_THAT(answer.body, testing::EndsWith("\nbody"));
  EXPECT_FALSE(answer.headers.Has("X-Hop"));
  EXPECT_EQ(answer.headers.Get("X-Second"), "2");
  std::string cookies;
  for (const auto& [name, value] : answer.headers) {
    if (name == "Set-Cookie") cookies += value + ";";
  }
  EXPECT_EQ(cookies, "a=1;b=2;");
}

TEST_F(ProxyRouteTest, StreamsAndHeads) {
  EXPECT_EQ(caller_->Get(prefix_ + "/stream").body, "data: 0\n\ndata: 1\n\n");
  EXPECT_EQ(caller_->Call("HEAD", prefix_ + "/x").status, 200);
}

TEST_F(ProxyRouteTest, WhatCannotBeReached) {
  for (const std::string& target : {prefix_ + "/die", std::string("/proxy/1/"),
                                    std::string("/proxy/abc/"), std::string("/proxy/70000/")}) {
    const auto answer = caller_->Get(target);
    EXPECT_EQ(answer.status, 502) << target;
    EXPECT_EQ(answer.body, "Bad Gateway\n");
    EXPECT_EQ(answer.headers.Get("X-Content-Type-Options"), "nosniff");
  }
}

TEST_F(ProxyRouteTest, ItsOwnPortByTheNameThatClientsKnow) {
  EXPECT_EQ(caller_->Get("/proxy/44772/ping").status, 200);
  EXPECT_EQ(caller_->Get("/proxy/44772/proxy/44772/ping").status, 200);
  EXPECT_EQ(caller_->Get("/proxy/" + std::to_string(caller_->port()) + "/ping").status, 200);
  EXPECT_THAT(caller_->Post("/proxy/44772/command", R"({"command":"echo via"})").body,
              HasSubstr("\"text\":\"via\""));
}

TEST_F(ProxyRouteTest, WebSockets) {
  SocketClient client(caller_->port(), prefix_ + "/ws");
  ASSERT_EQ(client.status(), 101);
  ASSERT_TRUE(client.socket().WriteText("hi").ok());
  EXPECT_EQ(client.Next(), "echo hi");
  const std::string big(300'000, 'x');
  ASSERT_TRUE(client.socket().WriteText(big).ok());
  EXPECT_EQ(client.Next(), "echo " + big);
  ASSERT_TRUE(client.socket().Close(1000, "bye").ok());
  EXPECT_EQ(client.Close(), "1000 ");
}

TEST_F(ProxyRouteTest, RefusedHandshakesArriveAsTheyAre) {
  EXPECT_EQ(SocketClient(caller_->port(), "/proxy/44772/pty/nope/ws").status(), 404);
  EXPECT_EQ(SocketClient(caller_->port(), "/proxy/1/ws").status(), 502);
  EXPECT_EQ(SocketClient(caller_->port(), prefix_ + "/plain").status(), 200);
}

TEST_F(ProxyRouteTest, ManyRequestsKeepNoDescriptors) {
  caller_->Get(prefix_ + "/warm");
  for (int i = 0; i < 50; ++i) ASSERT_EQ(caller_->Get(prefix_ + "/x").status, 200);
  // Both ends are in this process; what lingers is at most the last exchange of each.
  EXPECT_LE(backend_->connections(), 2u);
}

}  // namespace
}  // namespace bridge::local::execd
