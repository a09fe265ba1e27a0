// SPDX-License-Identifier: Apache-2.0
//
// `sbx create`, `ls`, `info`, `rm`.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>

#include "frontends/cli/json.h"
#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Verdict = pb::DeleteSandboxResponse::Verdict;

int64_t NowSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

pb::Sandbox Sample(const std::string& id = "sb-1") {
  pb::Sandbox sandbox;
  sandbox.set_sandbox_id(id);
  sandbox.set_state(pb::SANDBOX_STATE_RUNNING);
  sandbox.set_upstream_state("Running");
  sandbox.set_image("python:3.12-slim");
  sandbox.mutable_created_at()->set_seconds(NowSeconds() - 7200);
  sandbox.mutable_expires_at()->set_seconds(NowSeconds() + 600 + 30);
  (*sandbox.mutable_metadata())["team"] = "blue";
  (*sandbox.mutable_metadata())["a"] = "1";
  return sandbox;
}

class SandboxCommandsTest : public ::testing::Test {
 protected:
  void WillDelete(Verdict verdict) {
    fake_.on_delete = [this, verdict](const pb::DeleteSandboxRequest& request,
                                      pb::DeleteSandboxResponse* response) {
      deleted_.push_back(request);
      response->set_verdict(verdict);
      auto* evidence = response->add_evidence();
      evidence->set_action("DELETE");
      evidence->set_upstream_status(204);
      evidence->mutable_at()->set_seconds(1'700'000'000);
      evidence = response->add_evidence();
      evidence->set_action("GET");
      evidence->set_detail("connection refused");
      return grpc::Status::OK;
    };
  }

  std::vector<pb::DeleteSandboxRequest> deleted_;
  FakeBridge fake_;
  Sbx sbx_{fake_.address()};
};

TEST_F(SandboxCommandsTest, ASandboxWhoseIdCannotBePrintedIsDeletedAgain) {
  bool adopted = false;
  fake_.on_create = [&](const auto&, pb::CreateSandboxResponse* response) {
    *response->mutable_sandbox() = Sample("sb-new");
    response->set_adopted(adopted);
    return grpc::Status::OK;
  };
  WillDelete(pb::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
  sbx_.set_out(12345);  // no descriptor
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"create"}, std::vector<std::string>{"create", "--json"}}) {
    const Ran ran = sbx_.Run(args);
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("cannot write output"));
    EXPECT_THAT(ran.err, HasSubstr("sandbox sb-new was deleted again"));
    ASSERT_FALSE(deleted_.empty());
    EXPECT_EQ(deleted_.back().sandbox_id(), "sb-new");
  }
  EXPECT_EQ(deleted_.size(), 2u);
  WillDelete(pb::DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED);
  EXPECT_THAT(sbx_.Run({"create"}).err, HasSubstr("sbx rm sb-new"));
  // One that was there before is somebody's.
  adopted = true;
  EXPECT_THAT(sbx_.Run({"create"}).err, HasSubstr("the sandbox is sb-new"));
  EXPECT_EQ(deleted_.size(), 3u);
}

TEST_F(SandboxCommandsTest, CreatePrintsTheIdAlone) {
  pb::CreateSandboxRequest seen;
  fake_.on_create = [&](const pb::CreateSandboxRequest& request,
                        pb::CreateSandboxResponse* response) {
    seen = request;
    *response->mutable_sandbox() = Sample();
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"create", "--ttl=2h", "--label", "team=blue", "-e", "A=1"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "sb-1\n");
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(seen.spec().ttl().seconds(), 7200);
  EXPECT_EQ(seen.spec().metadata().at("team"), "blue");
  EXPECT_EQ(seen.spec().env(0).name(), "A");
}

TEST_F(SandboxCommandsTest, CreateAsJsonHasTheSandboxIdOnTop) {
  fake_.on_create = [&](const auto&, pb::CreateSandboxResponse* response) {
    *response->mutable_sandbox() = Sample();
    response->set_adopted(true);
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"create", "--json"});
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["sandbox_id"], "sb-1");
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(json["adopted"], true);
  EXPECT_EQ(json["ttl_clamped"], false);
}

TEST_F(SandboxCommandsTest, CreateSaysWhatWasChanged) {
  fake_.on_create = [&](const auto&, pb::CreateSandboxResponse* response) {
    *response->mutable_sandbox() = Sample();
    response->set_ttl_clamped(true);
    return grpc::Status::OK;
  };
  EXPECT_THAT(sbx_.Run({"create", "--ttl", "1s"}).err,
              StartsWith("sbx: the ttl was raised to the upstream's minimum; it expires in 10m"));
}

TEST_F(SandboxCommandsTest, AFailedCreateSaysWhatWasLeftBehind) {
  fake_.on_create = [&](const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_READY_TIMEOUT, grpc::StatusCode::DEADLINE_EXCEEDED,
                       "sandbox sb-9 was not usable after 1m", {{"leaked_sandbox_id", "sb-9"}});
  };
  const Ran ran = sbx_.Run({"create"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("sbx rm sb-9\n"));
}

TEST_F(SandboxCommandsTest, CtrlCDuringCreateCancelsTheCall) {
  std::promise<void> release;
  fake_.on_create = [released = release.get_future().share()](const auto&, auto*) {
    released.wait();
    return grpc::Status::CANCELLED;
  };
  auto ran = std::async(std::launch::async, [&] { return sbx_.Run({"create"}); });
  ASSERT_TRUE(fake_.WaitForCall("CreateSandbox"));
  sbx_.interrupts().Deliver(SIGINT);
  const Ran result = ran.get();
  release.set_value();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.err, "sbx: interrupted; the call was cancelled\n");
}

TEST_F(SandboxCommandsTest, ListFollowsThePagesAndAlignsColumns) {
  std::vector<std::string> tokens;
  fake_.on_list = [&](const pb::ListSandboxesRequest& request,
                      pb::ListSandboxesResponse* response) {
    tokens.push_back(request.page_token());
    *response->add_sandboxes() = Sample("sb-" + std::to_string(tokens.size()));
    if (tokens.size() < 3) response->set_next_page_token("page" + std::to_string(tokens.size()));
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"ls"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(tokens, ElementsAre("", "page1", "page2"));
  EXPECT_THAT(ran.out, StartsWith("SANDBOX  STATE    AGE  EXPIRES"));
  EXPECT_THAT(ran.out, HasSubstr("\nsb-3     running  2h   in 10m"));
  EXPECT_THAT(ran.out, HasSubstr("python:3.12-slim  a=1,team=blue\n"));
}

TEST_F(SandboxCommandsTest, ListFilters) {
  pb::ListSandboxesRequest seen;
  fake_.on_list = [&](const pb::ListSandboxesRequest& request,
                      pb::ListSandboxesResponse* response) {
    seen = request;
    *response->add_sandboxes() = Sample();
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run(
      {"ls", "-q", "-l", "team=blue", "-s", "running", "-s", "Paused", "--request-id", "r"});
  EXPECT_EQ(ran.out, "sb-1\n");
  EXPECT_EQ(seen.metadata().at("team"), "blue");
  EXPECT_THAT(seen.states(), ElementsAre(pb::SANDBOX_STATE_RUNNING, pb::SANDBOX_STATE_PAUSED));
  EXPECT_EQ(seen.request_id(), "r");
  EXPECT_THAT(sbx_.Run({"ls", "-s", "happy"}).err, HasSubstr("there is no state \"happy\""));
}

TEST_F(SandboxCommandsTest, ListAsJsonIsOneObject) {
  fake_.on_list = [&](const auto&, pb::ListSandboxesResponse* response) {
    *response->add_sandboxes() = Sample();
    response->set_total_size(1);
    return grpc::Status::OK;
  };
  const Json json = Json::parse(sbx_.Run({"ls", "--json"}).out);
  EXPECT_EQ(json["sandboxes"][0]["sandbox_id"], "sb-1");
  EXPECT_FALSE(json.contains("next_page_token"));
}

TEST_F(SandboxCommandsTest, AStateThisBuildDoesNotKnowIsShownAsTheUpstreamSaysIt) {
  fake_.on_list = [&](const auto&, pb::ListSandboxesResponse* response) {
    pb::Sandbox sandbox = Sample();
    sandbox.set_state(pb::SANDBOX_STATE_UNKNOWN);
    sandbox.set_upstream_state("Hibernating\x1b");
    sandbox.clear_expires_at();
    *response->add_sandboxes() = sandbox;
    return grpc::Status::OK;
  };
  const std::string out = sbx_.Run({"ls"}).out;
  EXPECT_THAT(out, HasSubstr("unknown (Hibernating\\x1b)"));
  EXPECT_THAT(out, HasSubstr("never"));
}

TEST_F(SandboxCommandsTest, InfoShowsWhatThereIs) {
  fake_.on_get = [&](const pb::GetSandboxRequest& request, pb::Sandbox* response) {
    *response = Sample(request.sandbox_id());
    response->set_state_reason("OOMKilled");
    response->set_state_message("too big");
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"info", "sb-5"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("sandbox      sb-5\n"));
  EXPECT_THAT(ran.out, HasSubstr("because      OOMKilled: too big\n"));
  EXPECT_THAT(ran.out, HasSubstr("labels       a=1,team=blue\n"));
  EXPECT_THAT(ran.out, Not(HasSubstr("platform")));
  EXPECT_EQ(Json::parse(sbx_.Run({"info", "--json", "sb-5"}).out)["state_reason"], "OOMKilled");
}

TEST_F(SandboxCommandsTest, InfoOfAnUnknownSandbox) {
  fake_.on_get = [&](const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_SANDBOX_NOT_FOUND, grpc::StatusCode::NOT_FOUND, "none");
  };
  const Ran ran = sbx_.Run({"info", "sb-5"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, StartsWith("sbx: SANDBOX_NOT_FOUND: none\n"));
}

TEST_F(SandboxCommandsTest, RemoveShowsTheProof) {
  WillDelete(pb::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
  const Ran ran = sbx_.Run({"rm", "--wait", "5s", "sb-1"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out,
            "sb-1: gone, confirmed\n"
            "  2023-11-14T22:13:20Z DELETE 204 \n"
            "  1970-01-01T00:00:00Z GET - connection refused\n");
  EXPECT_EQ(deleted_[0].wait_for_proof().seconds(), 5);
}

TEST_F(SandboxCommandsTest, RemoveIsHonestAboutTheVerdict) {
  WillDelete(pb::DeleteSandboxResponse::VERDICT_ALREADY_GONE);
  Ran ran = sbx_.Run({"rm", "sb-1"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, StartsWith("sb-1: was gone already\n"));
  EXPECT_FALSE(deleted_[0].has_wait_for_proof());
  WillDelete(pb::DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED);
  ran = sbx_.Run({"rm", "sb-1"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, StartsWith("sb-1: deletion accepted, NOT confirmed\n"));
  WillDelete(pb::DeleteSandboxResponse::VERDICT_UNSPECIFIED);
  EXPECT_EQ(sbx_.Run({"rm", "sb-1"}).exit_code, 1);
}

TEST_F(SandboxCommandsTest, RemoveGoesOnAfterAFailure) {
  fake_.on_delete = [&](const pb::DeleteSandboxRequest& request,
                        pb::DeleteSandboxResponse* response) {
    deleted_.push_back(request);
    if (request.sandbox_id() == "sb-1") {
      return ErrorStatus(pb::ERROR_REASON_CONFLICT, grpc::StatusCode::ABORTED, "busy");
    }
    response->set_verdict(pb::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"rm", "--json", "sb-1", "sb-2"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(deleted_.size(), 2u);
  EXPECT_EQ(Json::parse(ran.err)["error"]["reason"], "CONFLICT");
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["sandbox_id"], "sb-2");
  EXPECT_EQ(json["verdict"], "CONFIRMED_GONE");
}

TEST_F(SandboxCommandsTest, AReaderThatWentAwayIs141) {
  fake_.on_list = [](const auto&, auto*) { return grpc::Status::OK; };
  std::array<int, 2> pipe;
  ASSERT_EQ(pipe2(pipe.data(), O_CLOEXEC), 0);
  close(pipe[0]);
  sbx_.set_out(pipe[1]);
  const Ran ran = sbx_.Run({"ls"});
  EXPECT_EQ(ran.exit_code, 141);
  EXPECT_EQ(ran.err, "");
  close(pipe[1]);
}

}  // namespace
}  // namespace bridge::cli
