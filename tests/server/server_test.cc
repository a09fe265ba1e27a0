// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "bridge/base/error.h"
#include "bridge/base/version.h"
#include "tests/server/http_get.h"
#include "tests/server/raw_call.h"
#include "tests/server/server_fixture.h"
#include "tests/server/temp_folder.h"

namespace bridge::testing {
namespace {

using R = ErrorReason;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// ---- listening

TEST(Server, ListensOnSeveralAddressesAndTellsThePorts) {
  TempFolder folder;
  ServerOptions options = TestOptions();
  options.listen.push_back({.host = "127.0.0.1"});
  options.listen.push_back({.host = folder.path("s"), .unix_socket = true});
  TestServer server(options);
  ASSERT_TRUE(server.status().ok()) << server.status();
  ASSERT_EQ(server->addresses().size(), 3u);
  for (const ListenAddress& address : server->addresses()) {
    auto channel = grpc::CreateChannel(address.ToString(), grpc::InsecureChannelCredentials());
    v1::ServerInfo info;
    EXPECT_TRUE(Call(channel, {}, &info).ok()) << address.ToString();
    EXPECT_EQ(info.version(), kVersion);
    EXPECT_EQ(info.limits().max_concurrent_streams(), 8192);
  }
  EXPECT_NE(server->addresses()[0].port, server->addresses()[1].port);
  server.Destroy();
  EXPECT_THAT(server.log(), HasSubstr("msg=\"listening on 127.0.0.1:"));
  EXPECT_THAT(server.log(), HasSubstr("msg=\"listening on unix:" + folder.path("s")));
}

// Two bridges on one port would each get half of the connections.
TEST(Server, DoesNotShareItsPort) {
  TestServer first;
  ServerOptions options = TestOptions();
  options.listen[0].port = first.port();
  TestServer second(options);
  EXPECT_THAT(MessageOf(second.status()),
              AllOf(HasSubstr("listen: cannot listen on 127.0.0.1:"),
                    HasSubstr("Address already in use"), Not(HasSubstr("\n"))));
}

TEST(Server, SaysWhichOfSeveralAddressesIsTheProblem) {
  ServerOptions options = TestOptions();
  options.listen.push_back({.host = "192.0.2.1", .port = 1});
  options.insecure_public = true;
  EXPECT_THAT(MessageOf(TestServer(options).status()),
              HasSubstr("cannot listen on 192.0.2.1:1: Cannot assign requested address"));
}

TEST(Server, RefusesToBeOpenToTheNetworkByAccident) {
  TempFolder folder;
  const std::string tokens = folder.Write("t", "*:" + std::string(64, '0') + "\n");
  ServerOptions options = TestOptions();
  options.listen = {{.host = "127.0.0.1"}, {.host = "0.0.0.0"}};
  {
    TestServer server(options);
    EXPECT_EQ(ReasonOf(server.status()), R::ERROR_REASON_INVALID_ARGUMENT);
    EXPECT_THAT(MessageOf(server.status()), HasSubstr("--auth_tokens_file or --client_ca_file"));
    EXPECT_THAT(MessageOf(server.status()), HasSubstr("--insecure_public"));
  }
  options.auth_tokens_file = tokens;  // tokens in clear are not enough
  EXPECT_THAT(MessageOf(TestServer(options).status()), HasSubstr("--tls_cert_file"));
  options.auth_tokens_file.clear();
  options.insecure_public = true;
  TestServer server(options);
  EXPECT_TRUE(server.status().ok()) << server.status();
  server.Destroy();
  EXPECT_THAT(server.log(), HasSubstr("level=warning msg=\"--insecure_public: whoever reaches"));
}

TEST(Server, WantsAnUpstream) {
  ServerOptions options = TestOptions();
  options.services.upstream.url.clear();
  EXPECT_THAT(MessageOf(TestServer(options).status()), HasSubstr("upstream: is empty"));
}

// A browser or a script that speaks HTTP/1.1 gets nowhere.
TEST(Server, SpeaksNoHttp1) {
  TestServer server;
  const std::string answer =
      SendRaw(server.port(),
              "POST /sandbox.bridge.v1.BridgeService/GetServerInfo HTTP/1.1\r\nHost: x\r\n"
              "Content-Type: application/grpc\r\nContent-Length: 5\r\n\r\n" +
                  std::string(5, '\0'));
  EXPECT_THAT(answer, Not(HasSubstr("200")));
  EXPECT_TRUE(Call(server.NewChannel()).ok());
}

// ---- what is there besides

TEST(Server, HealthKnowsEveryService) {
  TestServer server;
  auto channel = server.NewChannel();
  EXPECT_EQ(HealthOf(channel, ""), 1);
  for (const std::string& name : server->services().Names()) {
    EXPECT_EQ(HealthOf(channel, name), 1) << name;
  }
  EXPECT_EQ(HealthOf(channel, "no.such.Service"), 0);
  server->MarkNotReady();
  EXPECT_EQ(HealthOf(channel, ""), 2);
  for (const std::string& name : server->services().Names()) EXPECT_EQ(HealthOf(channel, name), 2);
  EXPECT_TRUE(Call(channel).ok());  // and serves all the same
}

TEST(Server, ReflectionListsTheServices) {
  TestServer server;
  const std::string services = ListedServices(server.NewChannel());
  for (const std::string& name : server->services().Names()) {
    EXPECT_THAT(services, HasSubstr(name));
  }
}

TEST(Server, WhatDoesNotExistIsRefusedInWords) {
  TestServer server;
  auto channel = server.NewChannel();
  for (const auto& [method, feature] : {
           std::pair<std::string, std::string>{"/sandbox.bridge.v1.FutureService/Fly",
                                               "FutureService/Fly"},
           {"/sandbox.bridge.v1.BridgeService/Newer", "BridgeService/Newer"},
           {"/other.Service/Method", "/other.Service/Method"},
           {"/weird/\"method\" name", "unknown"},
       }) {
    const absl::Status status = FromGrpcStatus(RawCall(channel, method, "").Wait().second);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << method;
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_UNSUPPORTED_FEATURE) << method << status;
    EXPECT_EQ(MetadataOf(status)["feature"], feature);
  }
}

TEST(Server, TheAdminServerHasProbesAndMetrics) {
  ServerOptions options = TestOptions();
  options.admin_listen = "127.0.0.1:0";
  TestServer server(options);
  ASSERT_TRUE(server.status().ok()) << server.status();
  EXPECT_THAT(HttpGet(server->admin_port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(HttpGet(server->admin_port(), "/readyz"), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(Call(server.NewChannel()).ok());
  (void)RawCall(server.NewChannel(), "/some/callers-secret-method", "").Wait();
  const std::string metrics = HttpGet(server->admin_port(), "/metrics");
  EXPECT_THAT(metrics,
              HasSubstr("sandbox_bridge_calls_total{code=\"OK\",method=\"sandbox.bridge.v1."
                        "BridgeService/GetServerInfo\",reason=\"\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("method=\"unknown\",reason=\"UNSUPPORTED_FEATURE\"} 1"));
  EXPECT_THAT(metrics, Not(HasSubstr("secret")));
  EXPECT_THAT(metrics, HasSubstr("sandbox_bridge_ready 1"));
  EXPECT_THAT(metrics, HasSubstr("sandbox_bridge_background_tasks 0"));
  EXPECT_THAT(metrics, HasSubstr("sandbox_bridge_sandboxes_reclaimed_total 0"));
  EXPECT_THAT(metrics, HasSubstr("sandbox_bridge_sandboxes_leaked_total 0"));
  server->MarkNotReady();
  EXPECT_THAT(HttpGet(server->admin_port(), "/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(HttpGet(server->admin_port(), "/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST(Server, ABadAdminAddressIsNamed) {
  ServerOptions options = TestOptions();
  options.admin_listen = "nonsense";
  EXPECT_THAT(MessageOf(TestServer(options).status()), HasSubstr("admin_listen"));
}

// ---- the end

TEST(Server, ShutdownOfAnIdleServerTakesNoTime) {
  TestServer server;
  ASSERT_TRUE(Call(server.NewChannel()).ok());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(server->Shutdown(absl::Hours(1)));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

// Somebody who watches health for ever must not keep the server up.
TEST(Server, AHealthWatchDoesNotHoldUpTheEnd) {
  TestServer server;
  auto channel = server.NewChannel();
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto stream = stub.PrepareCall(&context, "/grpc.health.v1.Health/Watch", &queue);
  void* tag;
  bool ok = false;
  const auto next = [&] { return queue.Next(&tag, &ok) && ok; };
  stream->StartCall(nullptr);
  ASSERT_TRUE(next());
  stream->Write(ToBuffer(""), nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer response;
  stream->Read(&response, nullptr);
  ASSERT_TRUE(next());
  EXPECT_EQ(FromBuffer(response), "\x08\x01");
  stream->Read(&response, nullptr);

  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(server->Shutdown(absl::Hours(1)));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  while (next()) {
    stream->Read(&response, nullptr);  // NOT_SERVING may still have come
  }
  grpc::Status status;
  stream->Finish(&status, nullptr);
  (void)queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST(Server, DumpsItsCallsToTheLog) {
  TestServer server;
  server->DumpCalls();
  server.Destroy();
  EXPECT_THAT(server.log(), HasSubstr("msg=\"running calls\" count=0"));
}

}  // namespace
}  // namespace bridge::testing
