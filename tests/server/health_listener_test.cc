// SPDX-License-Identifier: Apache-2.0
//
// Health on an address of its own, beside a server that wants TLS.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"
#include "bridge/server/server.h"
#include "tests/server/raw_call.h"
#include "tests/server/server_fixture.h"
#include "tests/server/temp_folder.h"
#include "tests/server/test_certs.h"

namespace bridge::testing {
namespace {

using R = ErrorReason;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kServing = 1, kNotServing = 2;

class HealthListening : public ::testing::Test {
 protected:
  HealthListening() {
    const PemPair pair = ca_.Issue("the bridge");
    options_.tls.cert_file = folder_.Write("cert.pem", pair.cert);
    options_.tls.key_file = folder_.Write("key.pem", pair.key);
    options_.health_listen = "127.0.0.1:0";
  }

  static std::shared_ptr<grpc::Channel> Channel(TestServer& server) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server->health()->address().ToString(),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  TempFolder folder_;
  TestCa ca_{"ca"};
  ServerOptions options_ = TestOptions();
};

TEST_F(HealthListening, AnswersInTheClearForEveryService) {
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  ASSERT_NE(server->health(), nullptr);
  EXPECT_GT(server->health()->address().port, 0);
  const auto channel = Channel(server);
  EXPECT_EQ(HealthOf(channel, ""), kServing);
  for (const std::string& name : server->services().Names()) {
    EXPECT_EQ(HealthOf(channel, name), kServing) << name;
  }
  EXPECT_EQ(HealthOf(channel, "no.such.Service"), 0);
  EXPECT_EQ(HealthOf(server.NewChannel(), ""), 0) << "the other address speaks TLS only";
}

TEST_F(HealthListening, ServesNothingElse) {
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  const auto channel = Channel(server);
  EXPECT_EQ(Call(channel).code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(ListedServices(channel), Not(HasSubstr("sandbox.bridge")));
}

TEST_F(HealthListening, SaysNotServingFromTheStartOfADrainToItsEnd) {
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  const auto channel = Channel(server);
  server->MarkNotReady();
  EXPECT_EQ(HealthOf(channel, ""), kNotServing);
  EXPECT_EQ(HealthOf(channel, "sandbox.bridge.v1.ExecService"), kNotServing);
  EXPECT_TRUE(server->Shutdown(absl::Seconds(5)));
  EXPECT_EQ(HealthOf(channel, ""), 0);
}

TEST_F(HealthListening, AStartThatFailsNamesTheFlag) {
  TestServer taken;
  for (const std::string& address : {std::string("nonsense"), taken.address()}) {
    options_.health_listen = address;
    TestServer server(options_);
    EXPECT_EQ(ReasonOf(server.status()), R::ERROR_REASON_INVALID_ARGUMENT) << address;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr("health_listen")) << address;
  }
}

TEST_F(HealthListening, ChannelzIsRefusedWhereOthersReachIt) {
  options_.channelz = true;
  options_.health_listen = "0.0.0.0:0";
  TestServer server(options_);
  EXPECT_EQ(ReasonOf(server.status()), R::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("channelz"));
}

}  // namespace
}  // namespace bridge::testing
