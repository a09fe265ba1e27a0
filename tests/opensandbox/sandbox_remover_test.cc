// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_remover.h"

#include "bridge/opensandbox/labels.h"
#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::SizeIs;

MATCHER_P2(Saw, action, status, "") { return arg.action == action && arg.status == status; }

class SandboxRemoverTest : public LifecycleFixture {
 protected:
  SandboxRemoverTest() { fake_.Add("sb-1"); }

  absl::StatusOr<Deletion> Delete(absl::Duration wait = absl::Seconds(20),
                                  std::string incarnation = "") {
    return DeleteAs(Context(), wait, incarnation);
  }
  absl::StatusOr<Deletion> DeleteAs(CallContext context, absl::Duration wait = absl::Seconds(20),
                                    std::string incarnation = "") {
    return Run([=, this] { return remover_.Delete(context, "sb-1", incarnation, wait); });
  }
  int Deletes() { return fake_.Count("DELETE /v1/sandboxes/sb-1"); }

  SandboxRemover remover_{client_, directories_};
};

TEST_F(SandboxRemoverTest, DeletesAndLooks) {
  const auto deletion = Delete();
  ASSERT_THAT(deletion, IsOk());
  EXPECT_EQ(deletion->verdict, DeletionVerdict::kConfirmedGone);
  EXPECT_THAT(deletion->evidence, ElementsAre(Saw("DELETE", 204), Saw("GET", 404)));
  EXPECT_EQ(deletion->evidence[0].at, absl::FromUnixSeconds(1'700'000'000));
  EXPECT_EQ(Elapsed(), absl::ZeroDuration());
}

TEST_F(SandboxRemoverTest, WhatIsUnknownIsGoneAfterASecondLook) {
  for (const char* code : {"DOCKER::SANDBOX_NOT_FOUND", "KUBERNETES::SANDBOX_NOT_FOUND"}) {
    OnLoop([&] { fake_.sandboxes().clear(); });
    fake_.ForgetRequests();
    fake_.Script("DELETE *", {.status = 404, .body = std::string(R"({"code":")") + code + R"("})"});
    const auto deletion = Delete();
    ASSERT_THAT(deletion, IsOk());
    EXPECT_EQ(deletion->verdict, DeletionVerdict::kAlreadyGone);
    EXPECT_THAT(deletion->evidence, ElementsAre(Saw("DELETE", 404), Saw("GET", 404)));
    EXPECT_EQ(Deletes(), 1);
  }
}

TEST_F(SandboxRemoverTest, A404ThatASecondLookContradictsIsNoProof) {
  fake_.Script("DELETE *", {.status = 404, .body = R"({"code":"X::NOT_FOUND","message":"m"})"});
  EXPECT_THAT(Delete(), AllOf(HasReason("CONFLICT"), HasMessage("still shows it")));
  EXPECT_EQ(Deletes(), 1);
  EXPECT_LE(Elapsed(), absl::Seconds(2));
  EXPECT_NE(fake_.Find("sb-1"), nullptr);
}

TEST_F(SandboxRemoverTest, AWrongBaseUrlProvesNothing) {
  for (const char* body : {"", R"({"detail":"Not Found"})", "404 page not found"}) {
    fake_.Script("DELETE *", {.status = 404, .body = body});
    EXPECT_THAT(Delete(), HasReason("UPSTREAM_PROTOCOL")) << body;
  }
}

TEST_F(SandboxRemoverTest, AcceptedAndStillThere) {
  fake_.Script("DELETE *", {.status = 204, .times = -1});
  const auto deletion = Delete(absl::Seconds(3));
  ASSERT_THAT(deletion, IsOk());
  EXPECT_EQ(deletion->verdict, DeletionVerdict::kAcceptedUnconfirmed);
  // The first and the last of the looks; they all saw the same.
  EXPECT_THAT(deletion->evidence,
              ElementsAre(Saw("DELETE", 204), Saw("GET", 200), Saw("GET", 200)));
  EXPECT_EQ(deletion->evidence[2].at - deletion->evidence[1].at, absl::Seconds(3));
  EXPECT_EQ(fake_.Count("GET /v1/sandboxes/sb-1"), 4);
}

TEST_F(SandboxRemoverTest, ZeroWaitIsOneLook) {
  fake_.Script("DELETE *", {.status = 202});
  EXPECT_EQ(Delete(absl::ZeroDuration())->verdict, DeletionVerdict::kAcceptedUnconfirmed);
  EXPECT_EQ(fake_.Count("GET *"), 1);
}

TEST_F(SandboxRemoverTest, GoneAfterAWhile) {
  fake_.Script("DELETE *", {.status = 204});
  FakeTimeTask<absl::StatusOr<Deletion>> task(
      clock_, loop_, [&] { return remover_.Delete(Context(), "sb-1", "", absl::Seconds(20)); });
  task.Pass(absl::Milliseconds(2500));
  EXPECT_FALSE(task.done());
  OnLoop([&] { fake_.sandboxes().clear(); });
  EXPECT_EQ(task.Finish()->verdict, DeletionVerdict::kConfirmedGone);
  EXPECT_EQ(Elapsed(), absl::Seconds(3));
}

TEST_F(SandboxRemoverTest, LooksThatFailConfirmNothing) {
  fake_.Script("GET *", {.status = 500, .times = -1});
  const auto deletion = Delete(absl::Seconds(2));
  ASSERT_THAT(deletion, IsOk());
  EXPECT_EQ(deletion->verdict, DeletionVerdict::kAcceptedUnconfirmed);
  EXPECT_THAT(deletion->evidence[1], Saw("GET", 500));
}

TEST_F(SandboxRemoverTest, AConflictIsWaitedOut) {
  fake_.Script("DELETE *", {.status = 409});
  fake_.Script("DELETE *", {.status = 409, .headers = {{"Retry-After", "1"}}});
  EXPECT_EQ(Delete()->verdict, DeletionVerdict::kConfirmedGone);
  EXPECT_EQ(Deletes(), 3);
  EXPECT_EQ(Elapsed(), absl::Milliseconds(1500));
}

TEST_F(SandboxRemoverTest, ButNotForEver) {
  fake_.Script("DELETE *",
               {.status = 409, .body = R"({"code":"X","message":"busy"})", .times = -1});
  const auto deletion = Delete();
  EXPECT_THAT(deletion, AllOf(HasReason("CONFLICT"), HasMessage("busy")));
  EXPECT_EQ(deletion.status().code(), absl::StatusCode::kAborted);
  EXPECT_LE(Elapsed(), absl::Seconds(21));
}

TEST_F(SandboxRemoverTest, AWaitCanBeCancelled) {
  fake_.Script("DELETE *", {.status = 409, .times = -1});
  FakeTimeTask<absl::StatusOr<Deletion>> task(
      clock_, loop_, [&] { return remover_.Delete(Context(), "sb-1", "", absl::Seconds(20)); });
  task.Pass(absl::Milliseconds(200));
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
}

TEST_F(SandboxRemoverTest, AFailureIsLookedAt) {
  // Two other deletions are under way: this one's 500 means that it is going.
  fake_.Script("DELETE *", {.status = 500,
                            .body = R"({"code":"DOCKER::SANDBOX_DELETE_FAILED","message":"m"})"});
  fake_.Script("GET *",
               {.status = 404, .body = R"({"code":"DOCKER::SANDBOX_NOT_FOUND","message":"m"})"});
  const auto deletion = Delete();
  ASSERT_THAT(deletion, IsOk());
  EXPECT_EQ(deletion->verdict, DeletionVerdict::kConfirmedGone);
  EXPECT_THAT(deletion->evidence, ElementsAre(Saw("DELETE", 500), Saw("GET", 404)));
}

TEST_F(SandboxRemoverTest, AFailureIsTriedAgainAFewTimes) {
  fake_.Script("DELETE *", {.status = 500, .times = 2});
  EXPECT_EQ(Delete()->verdict, DeletionVerdict::kConfirmedGone);
  EXPECT_EQ(Deletes(), 3);
}

TEST_F(SandboxRemoverTest, APausedSandboxThatCannotBeDeleted) {
  fake_.Find("sb-1")->state = "Paused";
  fake_.Script("DELETE *", {.status = 500,
                            .body = R"({"code":"X","message":"sandbox not in normal state"})",
                            .times = -1});
  EXPECT_THAT(Delete(), AllOf(HasReason("UPSTREAM_FAILED"), HasMessage("not in normal state")));
  EXPECT_EQ(Deletes(), 3);
}

TEST_F(SandboxRemoverTest, ALostAnswerIsLookedAt) {
  fake_.Script("DELETE *", {.lost = true});  // done, and unanswered
  const auto deletion = Delete();
  ASSERT_THAT(deletion, IsOk());
  EXPECT_EQ(deletion->verdict, DeletionVerdict::kConfirmedGone);
  EXPECT_THAT(deletion->evidence, ElementsAre(Saw("DELETE", 0), Saw("GET", 404)));
}

TEST_F(SandboxRemoverTest, AServerThatIsDownIsAFailure) {
  fake_.Script("*", {.refused = true, .times = -1});
  EXPECT_THAT(Delete(), HasReason("UPSTREAM_UNAVAILABLE"));
  EXPECT_EQ(Deletes(), 3);
  EXPECT_LE(Elapsed(), absl::Seconds(5));
}

TEST_F(SandboxRemoverTest, RefusalsAreNotTriedAgain) {
  for (const int status : {400, 401, 403, 422}) {
    fake_.ForgetRequests();
    fake_.Script("DELETE *", {.status = status});
    EXPECT_FALSE(Delete().ok()) << status;
    EXPECT_THAT(fake_.requests(), SizeIs(1)) << status;
  }
}

TEST_F(SandboxRemoverTest, AnswersBeforeTheDeadline) {
  fake_.Script("DELETE *", {.status = 204, .times = -1});
  const auto deletion = DeleteAs(Context(absl::Seconds(3)));
  ASSERT_THAT(deletion, IsOk());
  EXPECT_EQ(deletion->verdict, DeletionVerdict::kAcceptedUnconfirmed);
  EXPECT_LT(Elapsed(), absl::Seconds(3));
}

TEST_F(SandboxRemoverTest, AnotherTenantsSandboxIsNotTouched) {
  OnLoop([&] { fake_.Find("sb-1")->metadata = OwnLabels({}, {.tenant = "blue"}); });
  CallContext red = Context();
  red.tenant = "red";
  EXPECT_THAT(DeleteAs(red), HasReason("NOT_YOUR_SANDBOX"));
  EXPECT_EQ(Deletes(), 0);
  CallContext blue = Context();
  blue.tenant = "blue";
  EXPECT_EQ(DeleteAs(blue)->verdict, DeletionVerdict::kConfirmedGone);
  // And of what is not there a tenant learns what everybody does, without a DELETE.
  fake_.ForgetRequests();
  EXPECT_EQ(DeleteAs(red)->verdict, DeletionVerdict::kAlreadyGone);
  EXPECT_EQ(fake_.Count("GET *"), 2);
  EXPECT_EQ(Deletes(), 0);
}

TEST_F(SandboxRemoverTest, ANewerSandboxOfTheSameIdIsNotTouched) {
  EXPECT_THAT(Delete(absl::Seconds(1), "2023-11-14T00:00:00Z"), HasReason("STALE_INCARNATION"));
  EXPECT_EQ(Deletes(), 0);
  EXPECT_THAT(Delete(absl::Seconds(1), "2023-11-14T22:13:20Z"), IsOk());
}

TEST_F(SandboxRemoverTest, TheDirectoriesForgetIt) {
  const auto found = Run([&] { return directory_.Resolve(Context(), "sb-1", ""); });
  ASSERT_THAT(found, IsOk());
  ASSERT_THAT(Delete(), IsOk());
  EXPECT_EQ(directory_.size(), 0u);
}

TEST_F(SandboxRemoverTest, AnEmptyIdIsRefused) {
  EXPECT_THAT(Run([&] { return remover_.Delete(Context(), "", "", absl::Seconds(1)); }),
              RejectsField("sandbox_id"));
  EXPECT_THAT(fake_.requests(), SizeIs(0));
}

}  // namespace
}  // namespace bridge
