// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/in_process.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "bridge/base/error.h"
#include "bridge/base/version.h"
#include "bridge/service/status.h"
#include "sandbox/bridge/v1/bridge.grpc.pb.h"
#include "tests/server/raw_call.h"

namespace bridge::testing {
namespace {

namespace v1 = sandbox::bridge::v1;
using ::testing::HasSubstr;

InProcessBridge::Options TestOptions() {
  InProcessBridge::Options options;
  options.services.upstream.url = "http://127.0.0.1:1";
  return options;
}

absl::Status Call(const std::shared_ptr<grpc::Channel>& channel, v1::ServerInfo* info) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  return FromGrpcStatus(v1::BridgeService::NewStub(channel)->GetServerInfo(&context, {}, info));
}

TEST(InProcessBridge, AnswersWithoutListening) {
  auto bridge = InProcessBridge::Create(TestOptions());
  ASSERT_TRUE(bridge.ok()) << bridge.status();
  auto channel = (*bridge)->NewChannel();
  v1::ServerInfo info;
  ASSERT_TRUE(Call(channel, &info).ok());
  EXPECT_EQ(info.version(), kVersion);
}

TEST(InProcessBridge, UnknownMethodsAreTypedThereToo) {
  auto bridge = InProcessBridge::Create(TestOptions());
  const absl::Status status = FromGrpcStatus(
      RawCall((*bridge)->NewChannel(), "/sandbox.bridge.v1.FutureService/Fly", "").Wait().second);
  EXPECT_EQ(ReasonOf(status), ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE);
}

TEST(InProcessBridge, EndsOnceAndQuickly) {
  auto bridge = InProcessBridge::Create(TestOptions());
  v1::ServerInfo info;
  ASSERT_TRUE(Call((*bridge)->NewChannel(), &info).ok());
  const auto start = std::chrono::steady_clock::now();
  (*bridge)->Shutdown(absl::Hours(1));
  (*bridge)->Shutdown(absl::Hours(1));  // again: nothing
  bridge->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(InProcessBridge, WantsAnUpstream) {
  InProcessBridge::Options options;
  EXPECT_THAT(std::string(InProcessBridge::Create(options).status().message()),
              HasSubstr("upstream"));
}

TEST(InProcessBridge, SeveralLiveBesideEachOther) {
  auto first = InProcessBridge::Create(TestOptions());
  auto second = InProcessBridge::Create(TestOptions());
  v1::ServerInfo info;
  EXPECT_TRUE(Call((*first)->NewChannel(), &info).ok());
  (*first).reset();
  EXPECT_TRUE(Call((*second)->NewChannel(), &info).ok());
}

}  // namespace
}  // namespace bridge::testing
