// SPDX-License-Identifier: Apache-2.0
//
// SandboxService over gRPC, on an OpenSandbox in memory.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "bridge/service/sandbox_service.h"
#include "bridge/service/status.h"
#include "tests/fakes/fake_opensandbox.h"
#include "tests/fakes/run_task.h"
#include "tests/fakes/status_matchers.h"

namespace bridge {

namespace v1 = sandbox::bridge::v1;

// Knows tenants by their token: "Bearer blue" is blue.
class ByToken final : public Authenticator {
 public:
  absl::StatusOr<Caller> Authenticate(std::string_view authorization) override {
    if (authorization.empty()) return Caller{};
    return Caller{.tenant = std::string(authorization.substr(7))};
  }
};

class SandboxServiceFixture : public ::testing::Test {
 protected:
  using Stub = v1::SandboxService::Stub;

  SandboxServiceFixture() {
    directories_.Add(loop_, directory_);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::SandboxService::NewStub(server_->InProcessChannel({}));
  }
  ~SandboxServiceFixture() override {
    server_->Shutdown();
    server_->Wait();
    while (host_.live() > 0) std::this_thread::yield();
    RunTask(loop_, [this]() -> Task<void> { co_await tasks_.Drain(loop_, absl::Seconds(10)); });
  }

  template <class Request, class Response>
  absl::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response, const std::string& tenant = "") {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    if (!tenant.empty()) context.AddMetadata("authorization", "Bearer " + tenant);
    return FromGrpcStatus((stub_.get()->*method)(&context, request, response));
  }
  absl::Status Create(const v1::CreateSandboxRequest& request, v1::Sandbox* sandbox,
                      const std::string& tenant = "") {
    v1::CreateSandboxResponse response;
    const absl::Status status = Call(&Stub::CreateSandbox, request, &response, tenant);
    *sandbox = response.sandbox();
    return status;
  }
  static v1::CreateSandboxRequest Image() {
    v1::CreateSandboxRequest request;
    request.mutable_spec()->set_image("img");
    return request;
  }
  static LifecycleClientOptions ClientOptions() {
    LifecycleClientOptions options;
    options.server = *ParseBaseUrl(FakeOpenSandbox::kUrl);
    return options;
  }

  ByToken tokens_;
  CallHost host_{{.api_key = "CANARYKEY", .authenticator = &tokens_}};
  EventLoop loop_;
  HttpClient http_{loop_};
  FakeOpenSandbox fake_{loop_};
  TaskScope tasks_;
  DirectoryGroup directories_;
  LifecycleClient client_{loop_, fake_, ClientOptions()};
  DaemonFinder finder_{client_, fake_, {}};
  CachingDirectory directory_{client_, finder_, tasks_, {}};
  DaemonClient daemons_{http_, directory_};
  Sandboxes sandboxes_{client_, finder_, directories_, tasks_};
  SandboxServiceImpl service_{{.host = host_,
                               .control = loop_,
                               .sandboxes = sandboxes_,
                               .control_daemons = daemons_,
                               .streams = loop_,
                               .stream_daemons = daemons_}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Stub> stub_;
};

}  // namespace bridge
