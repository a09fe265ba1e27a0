// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_creator.h"

#include <nlohmann/json.hpp>
#include <string>

#include "bridge/opensandbox/labels.h"
#include "tests/opensandbox/creator_fixture.h"

namespace bridge {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class SandboxCreatorTest : public CreatorFixture {};

TEST_F(SandboxCreatorTest, MakesOneThatIsUsable) {
  fake_.pings_until_ready = 5;
  const Result created = Create();
  ASSERT_THAT(created, IsOk());
  EXPECT_FALSE(created->adopted);
  EXPECT_FALSE(created->ttl_clamped);
  EXPECT_EQ(created->record.state, SandboxState::kRunning);
  EXPECT_EQ(Posts(), 1);
  EXPECT_EQ(Deletes(), 0);
  // The incarnation of a read, not of the create, whose createdAt is another.
  const auto read = Run([&] { return client_.Get(Context(), created->record.id); });
  EXPECT_EQ(IncarnationOf(created->record), IncarnationOf(read->record));
  // The next call needs no look-up.
  fake_.ForgetRequests();
  ASSERT_THAT(Run([&] { return directory_.Resolve(Context(), created->record.id, ""); }), IsOk());
  EXPECT_THAT(fake_.requests(), SizeIs(0));
}

TEST_F(SandboxCreatorTest, SendsWhatTheServerNeeds) {
  ASSERT_THAT(Create(), IsOk());
  const json body = PostBody();
  EXPECT_EQ(body["entrypoint"], json({"tail", "-f", "/dev/null"}));
  EXPECT_EQ(body["resourceLimits"], json({{"cpu", "1"}, {"memory", "2Gi"}}));
  EXPECT_EQ(body["image"], json({{"uri", "img"}}));
  EXPECT_FALSE(body.contains("snapshotId"));
  EXPECT_EQ(body["timeout"], 600);  // the lifetime, not the time to get ready
  EXPECT_EQ(body["metadata"]["sandbox-bridge/create-id"].get<std::string>().size(), 32u);
}

TEST_F(SandboxCreatorTest, TheCallersOwnWinsOverDefaults) {
  CreateSpec spec = Spec();
  spec.entrypoint = {"sh"};
  spec.resource_limits = {{"cpu", "500m"}};
  spec.metadata = {{"team", "core"}};
  ASSERT_THAT(Create(spec), IsOk());
  const json body = PostBody();
  EXPECT_EQ(body["entrypoint"], json({"sh"}));
  EXPECT_EQ(body["resourceLimits"], json({{"cpu", "500m"}, {"memory", "2Gi"}}));
  EXPECT_EQ(body["metadata"]["team"], "core");
}

TEST_F(SandboxCreatorTest, AShortLifeIsRaisedAndSaidSo) {
  CreateSpec spec = Spec();
  spec.ttl = absl::Seconds(1);
  EXPECT_TRUE(Create(spec)->ttl_clamped);
  EXPECT_EQ(PostBody()["timeout"], 60);
}

TEST_F(SandboxCreatorTest, NoLifetimeIsNoTimeout) {
  CreateSpec spec = Spec();
  spec.ttl = std::nullopt;
  const Result created = Create(spec);
  ASSERT_THAT(created, IsOk());
  EXPECT_FALSE(PostBody().contains("timeout"));
  EXPECT_EQ(created->record.expires_at, std::nullopt);
}

TEST_F(SandboxCreatorTest, LabelsTheTenant) {
  CallContext context = Context();
  context.tenant = "blue";
  const Result created =
      Run([=, this] { return creator_.Create(context, Spec(), "", absl::Seconds(60)); });
  ASSERT_THAT(created, IsOk());
  EXPECT_TRUE(BelongsTo(created->record, "blue"));
}

// --- Failures of the POST

TEST_F(SandboxCreatorTest, TheServersRefusalIsPassedOn) {
  const struct {
    int status;
    const char* body;
    const char* reason;
  } kCases[] = {
      {500, R"({"code":"DOCKER::SANDBOX_IMAGE_PULL_FAILED","message":"no such image nope:0"})",
       "SANDBOX_FAILED"},
      {400, R"({"code":"SANDBOX::INVALID_PARAMETER","message":"bad"})", "UPSTREAM_REJECTED"},
      {401, R"({"code":"INVALID_API_KEY","message":"bad"})", "UPSTREAM_UNAUTHENTICATED"},
      {429, R"({"code":"X::POOL_EXHAUSTED","message":"full"})", "QUOTA_EXCEEDED"},
      {409, R"({"code":"X::POOL_EXHAUSTED","message":"full"})", "QUOTA_EXCEEDED"},
      {503, R"({"code":"X::POOL_EXHAUSTED","message":"full"})", "UPSTREAM_UNAVAILABLE"},
      {504, R"({"code":"KUBERNETES::POD_READY_TIMEOUT","message":"slow"})", "READY_TIMEOUT"},
  };
  for (const auto& c : kCases) {
    fake_.ForgetRequests();
    fake_.Script("POST /v1/sandboxes", {.status = c.status, .body = c.body});
    EXPECT_THAT(Create(), HasReason(c.reason)) << c.status;
    EXPECT_THAT(fake_.requests(), SizeIs(1)) << c.status;  // definite: nothing to look for
  }
  EXPECT_LE(Elapsed(), absl::Seconds(1));
}

TEST_F(SandboxCreatorTest, ARefusedConnectionMadeNothing) {
  fake_.Script("POST /v1/sandboxes", {.refused = true});
  EXPECT_THAT(Create(), HasReason("UPSTREAM_UNAVAILABLE"));
  Settle();
  EXPECT_THAT(fake_.requests(), SizeIs(1));
}

TEST_F(SandboxCreatorTest, ALostAnswerIsLookedUp) {
  fake_.Script("POST /v1/sandboxes", {.lost = true});
  const Result created = Create();
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(Posts(), 1);
  EXPECT_EQ(fake_.size(), 1u);
}

TEST_F(SandboxCreatorTest, AListThatLagsIsAskedAgain) {
  fake_.Script("POST /v1/sandboxes", {.lost = true});
  fake_.on_create = [](FakeSandbox& sandbox) { sandbox.listed = false; };
  FakeTimeTask<Result> task(clock_, loop_, Body(Spec()));
  task.Pass(absl::Seconds(4));
  EXPECT_FALSE(task.done());
  OnLoop([&] { fake_.sandboxes().begin()->second.listed = true; });
  EXPECT_THAT(task.Finish(), IsOk());
  EXPECT_EQ(fake_.size(), 1u);
}

TEST_F(SandboxCreatorTest, AGatewaysErrorMayHideASandbox) {
  for (const FakeReply& reply :
       {FakeReply{.status = 502, .body = "<html><title>502 Bad Gateway</title></html>"},
        FakeReply{.status = 504}, FakeReply{.status = 500, .body = "Internal Server Error"},
        FakeReply{.status = 202, .body = "not json"}}) {
    fake_.ForgetRequests();
    OnLoop([&] { fake_.sandboxes().clear(); });
    fake_.Script("POST /v1/sandboxes", reply);
    FakeTimeTask<Result> task(clock_, loop_, Body(Spec()));
    task.Pass(absl::Seconds(2));
    EXPECT_FALSE(task.done());
    // What the server had made all the same.
    const json body = PostBody();
    OnLoop([&] {
      FakeSandbox& late = fake_.Add("sb-late");
      for (const auto& [key, value] : body["metadata"].items()) late.metadata[key] = value;
    });
    EXPECT_THAT(task.Finish(), IsOk()) << reply.status;
    EXPECT_EQ(Posts(), 1);
  }
}

TEST_F(SandboxCreatorTest, WhatNeverTurnsUpIsReportedAsUnknown) {
  fake_.Script("POST /v1/sandboxes", {.lost = true, .unprocessed = true});
  EXPECT_THAT(Create(),
              AllOf(HasReason("UPSTREAM_UNAVAILABLE"), HasMessage("whether a sandbox was made")));
  EXPECT_LE(Elapsed(), absl::Seconds(11));
  Settle();
  EXPECT_EQ(Posts(), 1);
  EXPECT_EQ(Deletes(), 0);
}

// 'Invalid character <' instead of a cause.
TEST_F(SandboxCreatorTest, AGatewaysPageIsNamed) {
  for (const int status : {502, 503, 504}) {
    const std::string number = std::to_string(status);
    fake_.Script("POST /v1/sandboxes",
                 {.status = status,
                  .body = "<html><title>" + number + " Bad Gateway</title><body>" +
                          std::string(2000, 'x') + "</body></html>",
                  .headers = {{"Content-Type", "text/html"}}});
    const Result created = Create();
    EXPECT_THAT(created, AllOf(HasReason("UPSTREAM_UNAVAILABLE"), HasDetail("host", "srv:8080"),
                               HasDetail("upstream_status", number),
                               HasMessage("web page: " + number + " Bad Gateway")));
    EXPECT_LE(created.status().message().size(), 500u);
  }
  EXPECT_EQ(Posts(), 3);
}

TEST_F(SandboxCreatorTest, WhatTurnsUpAfterTheCallIsDeleted) {
  fake_.Script("POST /v1/sandboxes", {.lost = true});
  fake_.on_create = [](FakeSandbox& sandbox) { sandbox.listed = false; };
  EXPECT_THAT(Create(), HasReason("UPSTREAM_UNAVAILABLE"));
  OnLoop([&] { fake_.sandboxes().begin()->second.listed = true; });
  Settle();
  EXPECT_EQ(fake_.size(), 0u);
  EXPECT_EQ(reclaimer_.reclaimed(), 1);
}

TEST_F(SandboxCreatorTest, AndLeftForTheRepeatWhereThereMayBeOne) {
  fake_.Script("POST /v1/sandboxes", {.lost = true});
  fake_.on_create = [](FakeSandbox& sandbox) { sandbox.listed = false; };
  EXPECT_THAT(Create(Spec(), "r-1"), HasMessage("same request_id"));
  OnLoop([&] { fake_.sandboxes().begin()->second.listed = true; });
  Settle();
  EXPECT_EQ(fake_.size(), 1u);
  const Result again = Create(Spec(), "r-1");
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->adopted);
  EXPECT_EQ(Posts(), 1);
}

TEST_F(SandboxCreatorTest, ACloneOfTheSandboxIsNotTakenForIt) {
  // The answer is lost, and somebody has already snapshotted and restored the sandbox: the restored
  // one is newer and carries the same labels.
  fake_.Script("POST /v1/sandboxes", {.lost = true});
  fake_.on_create = [this](FakeSandbox& sandbox) {
    fake_.on_create = nullptr;
    const auto labels = sandbox.metadata;
    FakeSandbox& clone = fake_.Add("clone");
    clone.snapshot_id = "snap-1";
    clone.metadata = labels;
    clone.created_at += absl::Seconds(1);
  };
  const Result created = Create();
  ASSERT_THAT(created, IsOk());
  EXPECT_NE(created->record.id, "clone");
}

// --- Getting ready

TEST_F(SandboxCreatorTest, AFailedSandboxIsDeletedAndTheReasonTold) {
  fake_.on_create = [](FakeSandbox& sandbox) {
    sandbox.state = "Failed";
    sandbox.reason = "CONTAINER_EXITED_ERROR";
    sandbox.message = "Sandbox container exited with code 127.";
  };
  EXPECT_THAT(Create(), AllOf(HasReason("SANDBOX_FAILED"), HasDetail("state", "Failed"),
                              HasMessage("exited with code 127"),
                              Not(HasDetail("leaked_sandbox_id", "sb-1"))));
  EXPECT_EQ(fake_.size(), 0u);
  EXPECT_EQ(reclaimer_.reclaimed(), 1);
}

TEST_F(SandboxCreatorTest, NotReadyInTimeIsDeleted) {
  fake_.pings_until_ready = 1000;
  EXPECT_THAT(Create(Spec(), "", absl::Seconds(3)),
              AllOf(HasReason("READY_TIMEOUT"), HasMessage("sb-1"), HasMessage("502"),
                    HasDetail("sandbox_id", "sb-1")));
  EXPECT_EQ(fake_.size(), 0u);
  EXPECT_LE(Elapsed(), absl::Seconds(4));
}

TEST_F(SandboxCreatorTest, ADeleteThatSays404DoesNotHideTheCause) {
  fake_.pings_until_ready = 1000;
  fake_.Script("DELETE *", {.status = 404, .body = R"({"code":"X::NOT_FOUND","message":"gone"})"});
  const Result created = Create(Spec(), "", absl::Seconds(3));
  EXPECT_THAT(created, AllOf(HasReason("READY_TIMEOUT"), HasDetail("leaked_sandbox_id", "sb-1")));
  EXPECT_THAT(created.status().ToString(), Not(HasSubstr("404")));
  EXPECT_EQ(Deletes(), 1);
  EXPECT_LE(Elapsed(), absl::Seconds(5));
}

TEST_F(SandboxCreatorTest, ALeakIsNamed) {
  fake_.pings_until_ready = 1000;
  fake_.Script("DELETE *", {.status = 500, .times = -1});
  EXPECT_THAT(Create(Spec(), "", absl::Seconds(3)),
              AllOf(HasReason("READY_TIMEOUT"), HasDetail("leaked_sandbox_id", "sb-1"),
                    HasMessage("may still be there")));
  Settle();
  EXPECT_EQ(reclaimer_.leaked(), 1);
}

TEST_F(SandboxCreatorTest, AVanishedSandboxIsAFailedOne) {
  fake_.prototype.state = "Pending";
  FakeTimeTask<Result> task(clock_, loop_, Body(Spec()));
  task.Pass(absl::Seconds(3));
  OnLoop([&] { fake_.sandboxes().clear(); });
  EXPECT_THAT(task.Finish(), AllOf(HasReason("SANDBOX_FAILED"), HasMessage("vanished")));
}

TEST_F(SandboxCreatorTest, ARefusedDaemonFailsFastAndIsDeleted) {
  fake_.prototype.address = "10.0.0.7:1";
  fake_.Script("GET 10.0.0.7*", {.status = 401, .times = -1});
  EXPECT_THAT(Create(), AllOf(HasReason("UPSTREAM_UNAUTHENTICATED"), HasDetail("hop", "sandbox")));
  EXPECT_EQ(fake_.size(), 0u);
  EXPECT_LE(Elapsed(), absl::Seconds(2));
}

// --- Callers who leave

TEST_F(SandboxCreatorTest, CancelledWhileItStarts) {
  fake_.prototype.state = "Pending";
  FakeTimeTask<Result> task(clock_, loop_, Body(Spec()));
  task.Pass(absl::Seconds(2));
  EXPECT_EQ(fake_.size(), 1u);
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
  Settle(absl::Seconds(1));
  EXPECT_EQ(Deletes(), 1);
  EXPECT_EQ(fake_.size(), 0u);
}

TEST_F(SandboxCreatorTest, CancelledBeforeTheAnswer) {
  fake_.Script("POST /v1/sandboxes", {.delay = absl::Seconds(90)});
  FakeTimeTask<Result> task(clock_, loop_, Body(Spec()));
  task.Pass(absl::Seconds(2));
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
  Settle(absl::Seconds(80));
  EXPECT_EQ(Deletes(), 0);  // its id is not known yet
  Settle(absl::Seconds(10));
  EXPECT_EQ(Deletes(), 1);
  EXPECT_EQ(fake_.size(), 0u);
}

TEST_F(SandboxCreatorTest, NotAnsweredInTime) {
  fake_.Script("POST /v1/sandboxes", {.delay = absl::Seconds(30)});
  EXPECT_THAT(Create(Spec(), "", absl::Seconds(5)),
              AllOf(HasReason("READY_TIMEOUT"), HasMessage("had not answered"),
                    HasDetail("last_probe", "no answer to the create")));
  EXPECT_EQ(Elapsed(), absl::Seconds(5));
  Settle(absl::Seconds(30));
  EXPECT_EQ(fake_.size(), 0u);
}

TEST_F(SandboxCreatorTest, CancelledAndThenLost) {
  fake_.Script("POST /v1/sandboxes", {.delay = absl::Seconds(10), .lost = true});
  FakeTimeTask<Result> task(clock_, loop_, Body(Spec()));
  task.Pass(absl::Seconds(2));
  task.Cancel();
  (void)task.Finish();
  Settle();
  EXPECT_EQ(fake_.size(), 0u);
}

TEST_F(SandboxCreatorTest, WhatAServerLacksIsNamed) {
  CreateSpec from_template, secure = Spec(), walled = Spec();
  from_template.template_id = "tpl";
  from_template.ttl = absl::Hours(1);
  secure.secure_access = true;
  walled.network_policy.emplace();
  const struct {
    CreateSpec spec;
    const char* code;
    const char* message;
    const char* feature;
  } cases[] = {
      {from_template, "DOCKER::INVALID_ENTRYPOINT", "m", "sandboxes.templates"},
      {from_template, "X", "either image or snapshotId must be given", "sandboxes.templates"},
      {secure, "SANDBOX::INVALID_PARAMETER",
       "secureAccess is not supported when runtime.type='docker'.", "sandboxes.secure_access"},
      {walled, "SANDBOX::INVALID_PARAMETER",
       "egress.image must be configured when networkPolicy is provided.",
       "sandboxes.network_policy"},
      {walled, "SANDBOX::INVALID_PARAMETER",
       "networkPolicy is not supported when docker network_mode=host.", "sandboxes.network_policy"},
  };
  for (const auto& row : cases) {
    fake_.ForgetRequests();
    const json body = {{"code", row.code}, {"message", row.message}};
    fake_.Script("POST *", {.status = 400, .body = body.dump()});
    EXPECT_THAT(Create(row.spec),
                AllOf(HasReason("UNSUPPORTED_FEATURE"), HasDetail("feature", row.feature)))
        << row.message;
    EXPECT_EQ(PostBody().contains("entrypoint"), row.spec.template_id.empty());
  }
  // Who did not ask for it is told what the server says.
  fake_.Script("POST *", {.status = 400,
                          .body = R"({"code":"X","message":"secureAccess is not supported"})"});
  EXPECT_THAT(Create(Spec()), HasReason("UPSTREAM_REJECTED"));
}

TEST_F(SandboxCreatorTest, SecretsStayOutOfErrors) {
  CreateSpec spec = Spec();
  spec.image_user = "u";
  spec.image_password = "CANARYPASS";
  spec.env = {{"TOKEN", "CANARYENV"}};
  fake_.Script("POST *", {.status = 422, .body = R"({"detail":[{"loc":["body","env"],"msg":"bad",
                                      "input":{"env":{"TOKEN":"CANARYENV"}}}]})"});
  const Result created = Create(spec);
  EXPECT_THAT(created, AllOf(HasReason("UPSTREAM_REJECTED"), HasMessage("body.env: bad")));
  EXPECT_THAT(created.status().ToString(), Not(HasSubstr("CANARY")));
}

}  // namespace
}  // namespace bridge
