// SPDX-License-Identifier: Apache-2.0
//
// `sbx doctor`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cli/json.h"
#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    fake_.on_server_info = [](const auto&, pb::ServerInfo* info) {
      info->set_version("0.1.0");
      info->mutable_upstream()->set_kind("local");
      info->mutable_upstream()->set_isolation("overlay");
      return grpc::Status::OK;
    };
    fake_.on_list = [](const auto&, auto*) { return grpc::Status::OK; };
    fake_.on_create = [](const auto&, pb::CreateSandboxResponse* response) {
      response->mutable_sandbox()->set_sandbox_id("sb-d");
      return grpc::Status::OK;
    };
    fake_.on_capabilities = [](const pb::GetCapabilitiesRequest& request,
                               pb::GetCapabilitiesResponse* response) {
      if (!request.sandbox_id().empty()) response->set_daemon("execd current");
      auto* capability = response->add_capabilities();
      capability->set_feature("files.watch");
      capability->set_level(pb::Capability::LEVEL_NONE);
      capability->set_note("the daemon cannot");
      return grpc::Status::OK;
    };
    fake_.on_run = [this](const pb::RunRequest& request, pb::RunResponse* response) {
      EXPECT_EQ(request.sandbox_id(), "sb-d");
      *response = ran_;
      return grpc::Status::OK;
    };
    fake_.on_delete = [](const auto&, pb::DeleteSandboxResponse* response) {
      response->set_verdict(pb::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
      return grpc::Status::OK;
    };
    ran_.mutable_outcome()->set_exit_code(3);
    ran_.set_stdout("a\r\n\377b");
    ran_.set_stderr("err");
  }

  pb::RunResponse ran_;
  FakeBridge fake_;
  Sbx sbx_{fake_.address()};
};

TEST_F(DoctorTest, AllIsWell) {
  const Ran ran = sbx_.Run({"doctor"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("ok    settings     " + fake_.address() + ", no TLS, no token"));
  EXPECT_THAT(ran.out, HasSubstr("version 0.1.0, upstream local, isolation overlay"));
  EXPECT_THAT(ran.out, HasSubstr("of execd current"));
  EXPECT_THAT(ran.out, HasSubstr("files.watch  none  the daemon cannot\n"));
  EXPECT_THAT(ran.out, HasSubstr("exact bytes, streams apart, true exit code"));
  EXPECT_THAT(ran.out, HasSubstr("gone, confirmed"));
  EXPECT_THAT(ran.out, HasSubstr("\nall is well\n"));
  EXPECT_THAT(ran.out, Not(HasSubstr("FAIL")));
  EXPECT_THAT(fake_.calls(), ElementsAre("GetServerInfo", "ListSandboxes", "CreateSandbox",
                                         "GetCapabilities", "Run", "DeleteSandbox"));
}

TEST_F(DoctorTest, AlteredBytesAreFound) {
  ran_.set_stdout("a\nb");
  const Ran ran = sbx_.Run({"doctor"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr("FAIL  exec         output was altered: stdout \"a\\nb\""));
  EXPECT_THAT(ran.out, Not(HasSubstr("all is well")));
  EXPECT_EQ(fake_.calls().back(), "DeleteSandbox");
}

TEST_F(DoctorTest, AWrongExitCodeIsFound) {
  ran_.mutable_outcome()->set_exit_code(0);
  EXPECT_THAT(sbx_.Run({"doctor"}).out,
              HasSubstr("a command that exits with 3 ended with exit code 0"));
}

TEST_F(DoctorTest, AFailureHasItsAdviceAndEndsTheChain) {
  fake_.on_list = [](const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_UPSTREAM_UNAUTHENTICATED, grpc::StatusCode::UNAUTHENTICATED,
                       "the server says 401");
  };
  const Ran ran = sbx_.Run({"doctor"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr("FAIL  upstream     UPSTREAM_UNAUTHENTICATED: the server says "
                                 "401. Correct the bridge's OpenSandbox key"));
  EXPECT_EQ(fake_.calls().back(), "ListSandboxes");
}

TEST_F(DoctorTest, NoBridgeAtAll) {
  const Ran ran = Sbx("127.0.0.1:1").Run({"doctor"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr("FAIL  bridge       BRIDGE_UNREACHABLE"));
}

TEST_F(DoctorTest, AFailedCreateDeletesNothing) {
  fake_.on_create = [](const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_SANDBOX_FAILED, grpc::StatusCode::FAILED_PRECONDITION,
                       "no such image");
  };
  EXPECT_EQ(sbx_.Run({"doctor"}).exit_code, 1);
  EXPECT_EQ(fake_.calls().back(), "CreateSandbox");
}

TEST_F(DoctorTest, QuickMakesNoSandbox) {
  EXPECT_EQ(sbx_.Run({"doctor", "--quick"}).exit_code, 0);
  EXPECT_THAT(fake_.calls(), ElementsAre("GetServerInfo", "ListSandboxes", "GetCapabilities"));
}

TEST_F(DoctorTest, LooksAtAGivenSandbox) {
  EXPECT_THAT(sbx_.Run({"doctor", "--sandbox", "sb-x"}).out, HasSubstr("of execd current"));
  EXPECT_EQ(fake_.calls().back(), "GetCapabilities");
}

TEST_F(DoctorTest, JsonHasTheChecksTheServerAndTheCapabilities) {
  const Ran ran = sbx_.Run({"doctor", "--json"});
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["server"]["upstream"]["isolation"], "overlay");
  EXPECT_EQ(json["capabilities"]["capabilities"][0]["level"], "NONE");
  std::vector<std::string> names;
  for (const Json& check : json["checks"]) names.push_back(check["check"]);
  EXPECT_THAT(names, ElementsAre("settings", "bridge", "upstream", "create", "capabilities", "exec",
                                 "delete"));
}

}  // namespace
}  // namespace bridge::cli
