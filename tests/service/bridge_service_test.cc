// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/bridge_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/net/event_loop.h"
#include "bridge/service/status.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;
using R = ErrorReason;
using ::testing::Gt;
using ::testing::Lt;

// Answers what the test says.
class FakeFacts final : public BridgeFacts {
 public:
  explicit FakeFacts(EventLoop& loop) : loop_(loop) {}

  Task<std::string> UpstreamVersion(CallContext context) override {
    time_left = context.deadline - loop_.Now();
    key = context.api_key;
    co_return version;
  }
  Task<absl::StatusOr<Capabilities>> GetCapabilities(CallContext, std::string id) override {
    asked.push_back(id);
    if (!failure.ok()) co_return failure;
    Capabilities found;
    v1::Capability row;
    row.set_feature("exec.bytes");
    row.set_level(v1::Capability::LEVEL_DEGRADED);
    row.set_note("why");
    found.rows.push_back(row);
    if (!id.empty()) found.daemon = "stock execd";
    co_return found;
  }

  std::string version = "1.1.1", key;
  absl::Duration time_left;
  absl::Status failure;
  std::vector<std::string> asked;

 private:
  EventLoop& loop_;
};

class BridgeServiceTest : public ::testing::Test {
 protected:
  BridgeServiceTest() {
    v1::ServerInfo info;
    info.set_version("9.9.9");
    info.mutable_upstream()->set_kind("opensandbox");
    info.mutable_upstream()->set_version("stale");
    info.mutable_limits()->set_min_ttl_seconds(60);
    service_ = std::make_unique<BridgeServiceImpl>(BridgeServiceImpl::Deps{
        .host = host_, .control = loop_, .facts = facts_, .info = std::move(info)});
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::BridgeService::NewStub(server_->InProcessChannel({}));
  }
  ~BridgeServiceTest() override {
    server_->Shutdown();
    server_->Wait();
    while (host_.live() > 0) std::this_thread::yield();
  }

  EventLoop loop_;
  CallHost host_{{.api_key = "key"}};
  FakeFacts facts_{loop_};
  std::unique_ptr<BridgeServiceImpl> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::BridgeService::Stub> stub_;
};

TEST_F(BridgeServiceTest, TellsWhatItIsAndAsksTheUpstreamForItsVersion) {
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(stub_->GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.version(), "9.9.9");
  EXPECT_EQ(info.upstream().kind(), "opensandbox");
  EXPECT_EQ(info.upstream().version(), "1.1.1");
  EXPECT_EQ(info.limits().min_ttl_seconds(), 60);
  EXPECT_EQ(facts_.key, "key");
}

// An upstream that is down has no version; that is no error, and nobody waits long for it.
TEST_F(BridgeServiceTest, AnUpstreamWithoutAVersionIsNoFailure) {
  facts_.version.clear();
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(stub_->GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.upstream().version(), "");
  EXPECT_THAT(facts_.time_left, Gt(absl::Seconds(1)));
  EXPECT_THAT(facts_.time_left, Lt(absl::Milliseconds(2001)));
}

TEST_F(BridgeServiceTest, PassesCapabilitiesOn) {
  for (const std::string id : {"", "sb-1"}) {
    grpc::ClientContext context;
    v1::GetCapabilitiesRequest request;
    request.set_sandbox_id(id);
    v1::GetCapabilitiesResponse response;
    ASSERT_TRUE(stub_->GetCapabilities(&context, request, &response).ok());
    ASSERT_EQ(response.capabilities_size(), 1);
    EXPECT_EQ(response.capabilities(0).feature(), "exec.bytes");
    EXPECT_EQ(response.capabilities(0).level(), v1::Capability::LEVEL_DEGRADED);
    EXPECT_EQ(response.capabilities(0).note(), "why");
    EXPECT_EQ(response.daemon(), id.empty() ? "" : "stock execd");
    EXPECT_EQ(facts_.asked.back(), id);
  }
}

TEST_F(BridgeServiceTest, FailuresOfTheSandboxArrive) {
  facts_.failure = MakeError(R::ERROR_REASON_SANDBOX_UNREACHABLE, "no answer");
  grpc::ClientContext context;
  v1::GetCapabilitiesRequest request;
  request.set_sandbox_id("sb-1");
  v1::GetCapabilitiesResponse response;
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stub_->GetCapabilities(&context, request, &response))),
            R::ERROR_REASON_SANDBOX_UNREACHABLE);
}

// SEC-06: an id that is no id never gets anywhere.
TEST_F(BridgeServiceTest, OddIdsAreRefusedBeforeAnythingIsAsked) {
  for (const std::string& id :
       {std::string("../x"), std::string("a/b"), std::string("a?x=1"), std::string("a b"),
        std::string("a\nb"), std::string(10'000, 'a')}) {
    grpc::ClientContext context;
    v1::GetCapabilitiesRequest request;
    request.set_sandbox_id(id);
    v1::GetCapabilitiesResponse response;
    EXPECT_EQ(ReasonOf(FromGrpcStatus(stub_->GetCapabilities(&context, request, &response))),
              R::ERROR_REASON_INVALID_ARGUMENT);
  }
  EXPECT_TRUE(facts_.asked.empty());
}

}  // namespace
}  // namespace bridge
