// SPDX-License-Identifier: Apache-2.0
//
// tests/integration/bridge_over_local.h — a whole bridge in this process in front of a whole local
// OpenSandbox, over real sockets, with faults on command.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/local/local_opensandbox.h"
#include "bridge/server/in_process.h"
#include "bridge/service/status.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/fakes/status_matchers.h"

namespace bridge {

namespace v1 = sandbox::bridge::v1;

// Faults that make a stock daemon of ours: the same without the pages of what it can do besides.
inline constexpr char kStockDaemon[] =
    R"(rule { half: EXECD route: "/v1/{rest...}" action { answer { status: 404 } } } )";

class BridgeOverLocal : public ::testing::Test {
 protected:
  static constexpr char kKey[] = "CANARYKEY";
  using Sandboxes = v1::SandboxService::Stub;
  using Execs = v1::ExecService::Stub;

  void SetUp() override { Start(); }
  void TearDown() override {
    if (bridge_) bridge_->Shutdown(absl::Seconds(5));
  }

  void Start(bool use_server_proxy = false, local::LocalOptions options = {}) {
    options.api_key = kKey;
    options.intercept_execd = true;
    auto local = local::LocalOpenSandbox::Start(std::move(options));
    ASSERT_TRUE(local.ok()) << local.status();
    local_ = *std::move(local);
    Connect(local_->url(), use_server_proxy);
  }
  void Connect(const std::string& url, bool use_server_proxy = false) {
    InProcessBridge::Options options;
    options.services.upstream.url = url;
    options.services.upstream.through_server = use_server_proxy;
    options.api_key = kKey;
    auto bridge = InProcessBridge::Create(std::move(options));
    ASSERT_TRUE(bridge.ok()) << bridge.status();
    bridge_ = *std::move(bridge);
    channel_ = bridge_->NewChannel();
    sandboxes_ = v1::SandboxService::NewStub(channel_);
    execs_ = v1::ExecService::NewStub(channel_);
  }
  // The plan counts from now on.
  void Faults(const std::string& plan) { ASSERT_THAT(local_->set_fault_plan(plan), IsOk()); }

  template <class Stub, class Request, class Response>
  absl::Status Call(Stub& stub,
                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response,
                    absl::Duration deadline = absl::Seconds(60)) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    const absl::Time start = absl::Now();
    const absl::Status status = FromGrpcStatus((stub.*method)(&context, request, response));
    took_ = absl::Now() - start;
    return status;
  }

  static v1::CreateSandboxRequest CreateRequest() {
    v1::CreateSandboxRequest request;
    request.mutable_spec()->set_image("base");
    request.mutable_spec()->mutable_ttl()->set_seconds(600);
    return request;
  }
  absl::Status Create(const v1::CreateSandboxRequest& request, v1::Sandbox* sandbox,
                      absl::Duration deadline = absl::Seconds(90)) {
    v1::CreateSandboxResponse response;
    const absl::Status status =
        Call(*sandboxes_, &Sandboxes::CreateSandbox, request, &response, deadline);
    *sandbox = response.sandbox();
    return status;
  }
  std::string MustCreate() {
    v1::Sandbox sandbox;
    const absl::Status status = Create(CreateRequest(), &sandbox);
    EXPECT_THAT(status, IsOk());
    return sandbox.sandbox_id();
  }
  absl::Status Run(const std::string& id, const std::string& command, v1::RunResponse* response,
                   absl::Duration deadline = absl::Seconds(60)) {
    v1::RunRequest request;
    request.set_sandbox_id(id);
    request.mutable_spec()->set_shell(command);
    return Call(*execs_, &Execs::Run, request, response, deadline);
  }
  absl::Status Delete(const std::string& id, v1::DeleteSandboxResponse* response) {
    v1::DeleteSandboxRequest request;
    request.set_sandbox_id(id);
    return Call(*sandboxes_, &Sandboxes::DeleteSandbox, request, response);
  }
  absl::Status Get(const std::string& id, v1::Sandbox* sandbox,
                   absl::Duration deadline = absl::Seconds(60)) {
    v1::GetSandboxRequest request;
    request.set_sandbox_id(id);
    return Call(*sandboxes_, &Sandboxes::GetSandbox, request, sandbox, deadline);
  }

  // How often a command with this text was sent.
  int CommandsWith(const std::string& text) {
    int count = 0;
    for (const char* route : {"/command", "/v1/exec"}) {
      for (const auto& request : local_->recorder().Matching("POST", route)) {
        if (request.body.find(text) != std::string::npos) ++count;
      }
    }
    return count;
  }
  size_t Count(const char* method, const char* route) {
    return local_->recorder().Matching(method, route).size();
  }
  bool WaitFor(const char* method, const char* route, size_t count,
               absl::Duration timeout = absl::Seconds(10)) {
    return local_->recorder().WaitFor(method, route, count, timeout);
  }

  std::unique_ptr<local::LocalOpenSandbox> local_;
  std::unique_ptr<InProcessBridge> bridge_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Sandboxes> sandboxes_;
  std::unique_ptr<Execs> execs_;
  absl::Duration took_;  // of the last call
};

}  // namespace bridge
