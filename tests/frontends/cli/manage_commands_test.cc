// SPDX-License-Identifier: Apache-2.0
//
// `sbx renew`, `pause`, `resume`, `url`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "frontends/cli/json.h"
#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ManageCommandsTest : public ::testing::Test {
 protected:
  FakeBridge fake_;
  Sbx sbx_{fake_.address()};
};

TEST_F(ManageCommandsTest, RenewPrintsWhatTheUpstreamStored) {
  pb::SetExpirationRequest seen;
  fake_.on_renew = [&](const pb::SetExpirationRequest& request,
                       pb::SetExpirationResponse* response) {
    seen = request;
    response->mutable_expires_at()->set_seconds(1'700'000'000);
    response->set_clamped(true);
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"renew", "--never-shorten", "sb-1", "30s"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "2023-11-14T22:13:20Z\n");
  EXPECT_EQ(ran.err, "sbx: the ttl was raised to the upstream's minimum\n");
  EXPECT_EQ(seen.sandbox_id(), "sb-1");
  EXPECT_EQ(seen.ttl().seconds(), 30);
  EXPECT_TRUE(seen.never_shorten());
}

TEST_F(ManageCommandsTest, RenewToNever) {
  fake_.on_renew = [&](const pb::SetExpirationRequest& request, auto*) {
    EXPECT_TRUE(request.never());
    return grpc::Status::OK;
  };
  EXPECT_EQ(sbx_.Run({"renew", "sb-1", "never"}).out, "never\n");
  EXPECT_EQ(sbx_.Run({"renew", "sb-1", "soon"}).exit_code, 2);
  EXPECT_EQ(sbx_.Run({"renew", "sb-1"}).exit_code, 2);
}

TEST_F(ManageCommandsTest, RenewSaysThatNothingChanged) {
  fake_.on_renew = [&](const auto&, pb::SetExpirationResponse* response) {
    response->set_unchanged(true);
    response->mutable_expires_at()->set_seconds(1'700'000'000);
    return grpc::Status::OK;
  };
  EXPECT_THAT(sbx_.Run({"renew", "--never-shorten", "sb-1", "1h"}).err,
              HasSubstr("it expires later already"));
}

TEST_F(ManageCommandsTest, PauseTellsWhetherItSettled) {
  pb::PauseSandboxRequest seen;
  pb::PauseSandboxResponse answer;
  answer.mutable_sandbox()->set_sandbox_id("sb-1");
  fake_.on_pause = [&](const pb::PauseSandboxRequest& request, pb::PauseSandboxResponse* response) {
    seen = request;
    *response = answer;
    return grpc::Status::OK;
  };
  Ran ran = sbx_.Run({"pause", "sb-1", "--wait=5s"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "sb-1: accepted, NOT yet paused\n");
  EXPECT_EQ(seen.wait().seconds(), 5);
  answer.set_settled(true);
  ran = sbx_.Run({"pause", "sb-1"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "sb-1: paused\n");
  EXPECT_FALSE(seen.has_wait());
  answer.set_already(true);
  EXPECT_EQ(sbx_.Run({"pause", "sb-1"}).out, "sb-1: was paused already\n");
  EXPECT_EQ(Json::parse(sbx_.Run({"pause", "--json", "sb-1"}).out)["settled"], true);
}

TEST_F(ManageCommandsTest, ResumeIsTheOtherWay) {
  fake_.on_resume = [&](const auto&, pb::ResumeSandboxResponse* response) {
    response->mutable_sandbox()->set_sandbox_id("sb-1");
    response->set_settled(true);
    return grpc::Status::OK;
  };
  EXPECT_EQ(sbx_.Run({"resume", "sb-1"}).out, "sb-1: running\n");
}

TEST_F(ManageCommandsTest, UrlPrintsTheUrlAloneAndPointsToTheHeaders) {
  pb::GetEndpointRequest seen;
  fake_.on_endpoint = [&](const pb::GetEndpointRequest& request, pb::Endpoint* endpoint) {
    seen = request;
    endpoint->set_url("http://10.0.0.1:41000");
    endpoint->set_websocket_url("ws://10.0.0.1:41000");
    auto* header = endpoint->add_headers();
    header->set_name("X-Token");
    header->set_value("secret");
    endpoint->add_notes("each request costs a descriptor");
    return grpc::Status::OK;
  };
  Ran ran = sbx_.Run({"url", "sb-1", "8000"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "http://10.0.0.1:41000\n");
  EXPECT_THAT(ran.err, HasSubstr("each request costs a descriptor"));
  EXPECT_THAT(ran.err, HasSubstr("requests need 1 header(s), which --headers shows"));
  EXPECT_EQ(ran.err.find("secret"), std::string::npos);
  EXPECT_EQ(seen.port(), 8000);
  EXPECT_EQ(seen.route(), pb::ENDPOINT_ROUTE_UNSPECIFIED);
  EXPECT_EQ(sbx_.Run({"url", "--headers", "--websocket", "--proxy", "sb-1", "1"}).out,
            "ws://10.0.0.1:41000\nX-Token: secret\n");
  EXPECT_EQ(seen.route(), pb::ENDPOINT_ROUTE_SERVER_PROXY);
  sbx_.Run({"url", "--direct", "sb-1", "1"});
  EXPECT_EQ(seen.route(), pb::ENDPOINT_ROUTE_DIRECT);
}

TEST_F(ManageCommandsTest, SignedUrlsLastAsLongAsAsked) {
  pb::CreateSignedEndpointRequest seen;
  fake_.on_signed_endpoint = [&](const pb::CreateSignedEndpointRequest& request,
                                 pb::Endpoint* endpoint) {
    seen = request;
    endpoint->set_url("http://h/s?x");
    return grpc::Status::OK;
  };
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  EXPECT_EQ(sbx_.Run({"url", "--signed", "10m", "sb-1", "80"}).out, "http://h/s?x\n");
  EXPECT_GE(seen.expires_at().seconds(), now + 599);
  EXPECT_LE(seen.expires_at().seconds(), now + 660);
}

TEST_F(ManageCommandsTest, BadPortsAreRefusedHere) {
  for (const char* port : {"0", "-1", "65536", "80.5", "80/../..", "", "http"}) {
    EXPECT_EQ(sbx_.Run({"url", "--", "sb-1", port}).exit_code, 2) << port;
  }
  EXPECT_EQ(sbx_.Run({"url", "--direct", "--proxy", "sb-1", "80"}).exit_code, 2);
  EXPECT_THAT(fake_.calls(), IsEmpty());
}

}  // namespace
}  // namespace bridge::cli
