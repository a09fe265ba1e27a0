// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/usable_waiter.h"

#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using Result = absl::StatusOr<SandboxRecord>;

class UsableWaiterTest : public LifecycleFixture {
 protected:
  UsableWaiterTest() { fake_.Add("sb-1").address = "10.0.0.7:44064"; }
  auto Body(absl::Duration timeout) {
    return [=, this] { return waiter_.Wait(Context(), "sb-1", loop_.Now() + timeout, timeout); };
  }
  Result Wait(absl::Duration timeout = absl::Seconds(60)) { return Run(Body(timeout)); }
  // Changes the sandbox after `after`.
  Result WaitWhile(absl::Duration after, std::function<void(FakeSandbox&)> change) {
    FakeTimeTask<Result> task(clock_, loop_, Body(absl::Seconds(60)));
    task.Pass(after);
    EXPECT_FALSE(task.done());
    OnLoop([&] { change(*fake_.Find("sb-1")); });
    return task.Finish();
  }

  UsableWaiter waiter_{client_, finder_, directories_};
};

TEST_F(UsableWaiterTest, AtOnceWhenItIs) {
  const Result record = Wait();
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->id, "sb-1");
  EXPECT_EQ(Elapsed(), absl::ZeroDuration());
  // And everybody knows where.
  EXPECT_EQ(directory_.size(), 1u);
}

TEST_F(UsableWaiterTest, RunningIsNotUsable) {
  for (const FakeReply& reply :
       {FakeReply{.status = 502, .body = R"({"message":"Could not connect"})", .times = 20},
        FakeReply{.status = 500, .body = "An internal error occurred in the proxy", .times = 20},
        FakeReply{.refused = true, .times = 20}}) {
    fake_.Script("GET 10.0.0.7*", reply);
    EXPECT_THAT(Wait(), IsOk());
  }
}

TEST_F(UsableWaiterTest, StartsLookingOften) {
  fake_.Script("GET 10.0.0.7*", {.refused = true, .times = 2});
  ASSERT_THAT(Wait(), IsOk());
  EXPECT_LE(Elapsed(), absl::Milliseconds(30));
}

TEST_F(UsableWaiterTest, StatesOnTheWay) {
  for (const char* state : {"Pending", "Allocated", "Unknown", "Resuming"}) {
    OnLoop([&] { fake_.Find("sb-1")->state = state; });
    EXPECT_THAT(WaitWhile(absl::Seconds(5), [](FakeSandbox& s) { s.state = "Running"; }), IsOk());
  }
}

TEST_F(UsableWaiterTest, FailsAsSoonAsTheSandboxDoes) {
  OnLoop([&] {
    fake_.Find("sb-1")->state = "Pending";
    fake_.Find("sb-1")->reason = "ImagePullBackOff";
  });
  const Result result = WaitWhile(absl::Seconds(2), [](FakeSandbox& s) {
    s.state = "Failed";
    s.reason = "ImagePullBackOff";
    s.message = "no such image: nope:0";
  });
  EXPECT_THAT(result, AllOf(HasReason("SANDBOX_FAILED"), HasDetail("state", "Failed"),
                            HasMessage("ImagePullBackOff: no such image: nope:0")));
  EXPECT_LE(Elapsed(), absl::Seconds(3));
}

TEST_F(UsableWaiterTest, AnEntrypointThatEndedIsAFailure) {
  OnLoop([&] { fake_.Find("sb-1")->state = "Terminated"; });
  EXPECT_THAT(Wait(), AllOf(HasReason("SANDBOX_FAILED"), HasDetail("state", "Terminated")));
}

TEST_F(UsableWaiterTest, TimeIsUp) {
  fake_.Script("GET 10.0.0.7*", {.status = 500, .body = "boom", .times = -1});
  EXPECT_THAT(Wait(absl::Seconds(3)),
              AllOf(HasReason("READY_TIMEOUT"), HasMessage("sb-1"), HasMessage("within 3s"),
                    HasMessage("/ping answered 500: boom"), HasDetail("sandbox_id", "sb-1")));
  EXPECT_EQ(Elapsed(), absl::Seconds(3));
}

TEST_F(UsableWaiterTest, TheLastProbeIsTheLastThatSaidSomething) {
  OnLoop([&] { fake_.Find("sb-1")->state = "Pending"; });
  fake_.Script("GET /v1/sandboxes/sb-1", {.times = 8});
  fake_.Script("GET /v1/sandboxes/sb-1", {.delay = absl::Hours(1), .times = -1});
  EXPECT_THAT(Wait(absl::Seconds(4)),
              AllOf(HasReason("READY_TIMEOUT"), HasMessage("state Pending")));
}

TEST_F(UsableWaiterTest, RefusalsAreNotWaitedOut) {
  for (const int status : {401, 403}) {
    fake_.Script("GET 10.0.0.7*", {.status = status});
    const Result result = Wait();
    EXPECT_THAT(result, HasDetail("hop", "sandbox")) << status;
    EXPECT_LE(Elapsed(), absl::Seconds(2));
  }
  fake_.Script("GET /v1/sandboxes/sb-1", {.status = 401});
  EXPECT_THAT(Wait(), AllOf(HasReason("UPSTREAM_UNAUTHENTICATED"), HasDetail("hop", "server")));
}

TEST_F(UsableWaiterTest, ARecordMayBeLateButNotForEver) {
  fake_.Script("GET /v1/sandboxes/sb-1",
               {.status = 404, .body = R"({"code":"X::NOT_FOUND","message":"m"})", .times = 3});
  EXPECT_THAT(Wait(), IsOk());
  fake_.Script("GET /v1/sandboxes/sb-1",
               {.status = 404, .body = R"({"code":"X::NOT_FOUND","message":"m"})", .times = -1});
  EXPECT_THAT(Wait(), HasReason("SANDBOX_NOT_FOUND"));
  EXPECT_LE(Elapsed(), absl::Seconds(4));
}

TEST_F(UsableWaiterTest, AnAddressThatComesLate) {
  fake_.Script(
      "GET /v1/sandboxes/sb-1/endpoints/44772",
      {.status = 404, .body = R"({"code":"KUBERNETES::POD_IP_NOT_AVAILABLE"})", .times = 5});
  EXPECT_THAT(Wait(), IsOk());
}

TEST_F(UsableWaiterTest, TheServerMayStumble) {
  fake_.Script("GET /v1/sandboxes/sb-1", {.status = 500, .times = 3});
  fake_.Script("GET /v1/sandboxes/sb-1", {.refused = true, .times = 10});
  EXPECT_THAT(Wait(), IsOk());
}

TEST_F(UsableWaiterTest, TheEndpointIsReadAnewEachTime) {
  OnLoop([&] { fake_.Find("sb-1")->daemon_up = false; });
  EXPECT_THAT(WaitWhile(absl::Seconds(1),
                        [](FakeSandbox& s) {
                          s.daemon_up = true;
                          s.address = "10.0.0.9:1";
                        }),
              IsOk());
  const auto daemon = Run([&] { return directory_.Resolve(Context(), "sb-1", ""); });
  EXPECT_EQ((*daemon)->endpoint.url, "http://10.0.0.9:1");
}

TEST_F(UsableWaiterTest, CancelledMeansCancelled) {
  OnLoop([&] { fake_.Find("sb-1")->state = "Pending"; });
  FakeTimeTask<Result> task(clock_, loop_, Body(absl::Seconds(60)));
  task.Pass(absl::Seconds(1));
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
}

}  // namespace
}  // namespace bridge
