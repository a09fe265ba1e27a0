// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_pauser.h"

#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using Result = absl::StatusOr<Transition>;

class SandboxPauserTest : public LifecycleFixture {
 protected:
  SandboxPauserTest() { fake_.Add("sb-1").address = "10.0.0.7:44064"; }
  auto PauseBody() {
    return [this] { return pauser_.Pause(Context(), "sb-1", "", absl::Seconds(30)); };
  }
  auto ResumeBody() {
    return [this] { return pauser_.Resume(Context(), "sb-1", "", absl::Seconds(60)); };
  }
  Result Pause() { return Run(PauseBody()); }
  Result Resume() { return Run(ResumeBody()); }
  void SetState(const char* state) {
    OnLoop([&] { fake_.Find("sb-1")->state = state; });
  }
  int Pauses() { return fake_.Count("POST /v1/sandboxes/sb-1/pause"); }
  int Resumes() { return fake_.Count("POST /v1/sandboxes/sb-1/resume"); }

  UsableWaiter usable_{client_, finder_, directories_};
  SandboxPauser pauser_{client_, usable_, directories_};
};

TEST_F(SandboxPauserTest, ThereAndBackThreeTimes) {
  for (int round = 0; round < 3; ++round) {
    const Result paused = Pause();
    ASSERT_THAT(paused, IsOk());
    EXPECT_TRUE(paused->settled);
    EXPECT_FALSE(paused->already);
    EXPECT_EQ(paused->record.state, SandboxState::kPaused);
    const Result resumed = Resume();
    ASSERT_THAT(resumed, IsOk());
    EXPECT_TRUE(resumed->settled);
    EXPECT_FALSE(resumed->already);
    EXPECT_EQ(resumed->record.state, SandboxState::kRunning);
  }
  EXPECT_EQ(Elapsed(), absl::ZeroDuration());
}

TEST_F(SandboxPauserTest, AlreadyThere) {
  SetState("Paused");
  EXPECT_TRUE(Pause()->already);
  EXPECT_EQ(Pauses(), 0);
  SetState("Running");
  const Result resumed = Resume();
  EXPECT_TRUE(resumed->already);
  EXPECT_TRUE(resumed->settled);
  EXPECT_EQ(Resumes(), 0);
}

TEST_F(SandboxPauserTest, SomebodyElseWasFaster) {
  // Running when read, paused when asked: 409 from newer servers, 500 from older ones.
  for (const int status : {409, 500}) {
    SetState("Running");
    fake_.Script("POST *", {.status = status, .body = R"({"code":"X","message":"m"})"});
    fake_.Script("GET /v1/sandboxes/sb-1", {});
    fake_.Script("GET /v1/sandboxes/sb-1",
                 {.status = 200, .body = R"({"id":"sb-1","status":{"state":"Paused"}})"});
    const Result paused = Pause();
    ASSERT_THAT(paused, IsOk()) << status;
    EXPECT_TRUE(paused->already);
  }
}

TEST_F(SandboxPauserTest, ARefusalThatTheStateContradicts) {
  fake_.Script("POST *", {.status = 409, .body = R"({"code":"X","message":"busy"})"});
  EXPECT_THAT(Pause(), AllOf(HasReason("CONFLICT"), HasMessage("busy")));
  fake_.Script("POST *", {.status = 500, .body = R"({"code":"X","message":"boom"})"});
  EXPECT_THAT(Pause(), AllOf(HasReason("UPSTREAM_FAILED"), HasMessage("boom")));
  fake_.Script("POST *", {.status = 400, .body = R"({"code":"SANDBOX::API_NOT_SUPPORTED"})"});
  EXPECT_THAT(Pause(),
              AllOf(HasReason("UNSUPPORTED_FEATURE"), HasDetail("feature", "sandboxes.pause")));
}

TEST_F(SandboxPauserTest, OtherStatesAreNamed) {
  for (const char* state : {"Failed", "Terminated", "Stopping", "Pending", "Allocated"}) {
    SetState(state);
    EXPECT_THAT(Pause(), AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", state)));
    EXPECT_THAT(Resume(), AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", state)));
  }
  EXPECT_EQ(Pauses() + Resumes(), 0);
}

TEST_F(SandboxPauserTest, WaitsForASlowPause) {
  fake_.Script("POST *", {.status = 202});
  SetState("Running");
  FakeTimeTask<Result> task(clock_, loop_, PauseBody());
  task.Pass(absl::Seconds(1));
  SetState("Pausing");
  task.Pass(absl::Seconds(5));
  EXPECT_FALSE(task.done());
  SetState("Paused");
  EXPECT_TRUE(task.Finish()->settled);
}

TEST_F(SandboxPauserTest, WhoeverLooksItUpMeanwhileIsForgottenToo) {
  fake_.Script("POST *", {.status = 202});
  FakeTimeTask<Result> task(clock_, loop_, PauseBody());
  task.Pass(absl::Seconds(1));  // still Running
  ASSERT_THAT(Run([&] { return directory_.Resolve(Context(), "sb-1", ""); }), IsOk());
  EXPECT_EQ(directory_.size(), 1u);
  SetState("Paused");
  EXPECT_TRUE(task.Finish()->settled);
  EXPECT_EQ(directory_.size(), 0u);
}

TEST_F(SandboxPauserTest, NotSettledIsAnAnswer) {
  fake_.Script("POST *", {.status = 202});
  SetState("Running");
  const Result paused = Pause();
  ASSERT_THAT(paused, IsOk());
  EXPECT_FALSE(paused->settled);
  EXPECT_EQ(paused->record.state, SandboxState::kRunning);
  EXPECT_EQ(Elapsed(), absl::Seconds(30));
}

TEST_F(SandboxPauserTest, APauseThatFails) {
  fake_.Script("POST *", {.status = 202});
  FakeTimeTask<Result> task(clock_, loop_, PauseBody());
  task.Pass(absl::Seconds(1));
  SetState("Failed");
  EXPECT_THAT(task.Finish(), AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", "Failed")));
}

TEST_F(SandboxPauserTest, AResumedSandboxIsFoundAtItsNewPlace) {
  ASSERT_THAT(Run([&] { return directory_.Resolve(Context(), "sb-1", ""); }), IsOk());
  ASSERT_THAT(Pause(), IsOk());
  EXPECT_EQ(directory_.size(), 0u);
  // 202, Resuming for a second, Running elsewhere, and its daemon a second later still.
  fake_.Script("POST *", {.status = 202});
  FakeTimeTask<Result> task(clock_, loop_, ResumeBody());
  SetState("Resuming");
  task.Pass(absl::Seconds(1));
  OnLoop([&] {
    fake_.Find("sb-1")->state = "Running";
    fake_.Find("sb-1")->address = "10.0.0.9:1";
    fake_.Find("sb-1")->daemon_up = false;
  });
  task.Pass(absl::Seconds(1));
  EXPECT_FALSE(task.done());
  OnLoop([&] { fake_.Find("sb-1")->daemon_up = true; });
  EXPECT_TRUE(task.Finish()->settled);
  fake_.ForgetRequests();
  const auto daemon = Run([&] { return directory_.Resolve(Context(), "sb-1", ""); });
  EXPECT_EQ((*daemon)->endpoint.url, "http://10.0.0.9:1");
  EXPECT_EQ(fake_.requests().size(), 0u);
}

TEST_F(SandboxPauserTest, ADaemonThatStaysSilent) {
  ASSERT_THAT(Pause(), IsOk());
  OnLoop([&] { fake_.Find("sb-1")->daemon_up = false; });
  const Result resumed = Resume();
  ASSERT_THAT(resumed, IsOk());
  EXPECT_FALSE(resumed->settled);
  EXPECT_EQ(Elapsed(), absl::Seconds(60));
}

// A wrong key looked like a slow sandbox.
TEST_F(SandboxPauserTest, ADaemonThatRefusesIsNotWaitedFor) {
  for (const int status : {401, 403}) {
    ASSERT_THAT(Pause(), IsOk());
    fake_.Script("GET 10.0.0.7*", {.status = status});
    const absl::Duration start = Elapsed();
    EXPECT_THAT(Resume(), AllOf(HasReason(status == 401 ? "UPSTREAM_UNAUTHENTICATED"
                                                        : "UPSTREAM_PERMISSION_DENIED"),
                                HasDetail("hop", "sandbox")));
    EXPECT_LE(Elapsed() - start, absl::Seconds(2));
  }
}

TEST_F(SandboxPauserTest, AFailedResumeReachesTheCallerAndMayBeRepeated) {
  ASSERT_THAT(Pause(), IsOk());
  fake_.Script("POST *", {.status = 500, .body = R"({"code":"X","message":"once"})"});
  EXPECT_THAT(Resume(), AllOf(HasReason("UPSTREAM_FAILED"), HasMessage("once")));
  EXPECT_TRUE(Resume()->settled);
}

TEST_F(SandboxPauserTest, TheDeadlineBoundsTheWait) {
  fake_.Script("POST *", {.status = 202});
  const Result paused =
      Run([&] { return pauser_.Pause(Context(absl::Seconds(5)), "sb-1", "", absl::Seconds(30)); });
  ASSERT_THAT(paused, IsOk());
  EXPECT_FALSE(paused->settled);
  EXPECT_LT(Elapsed(), absl::Seconds(5));
}

TEST_F(SandboxPauserTest, CancelledMeansCancelled) {
  fake_.Script("POST *", {.status = 202});
  FakeTimeTask<Result> task(clock_, loop_, PauseBody());
  task.Pass(absl::Seconds(1));
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
}

TEST_F(SandboxPauserTest, OthersAreNotTouched) {
  CallContext red = Context();
  red.tenant = "red";
  EXPECT_THAT(Run([&] { return pauser_.Pause(red, "sb-1", "", absl::Seconds(1)); }),
              HasReason("NOT_YOUR_SANDBOX"));
  EXPECT_THAT(Run([&] { return pauser_.Resume(Context(), "sb-1", "old", absl::Seconds(1)); }),
              HasReason("STALE_INCARNATION"));
  EXPECT_EQ(Pauses() + Resumes(), 0);
}

}  // namespace
}  // namespace bridge
