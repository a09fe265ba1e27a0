// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/caching_directory.h"

#include <memory>

#include "bridge/opensandbox/labels.h"
#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::SizeIs;

using Found = absl::StatusOr<std::shared_ptr<Daemon>>;

class CachingDirectoryTest : public LifecycleFixture {
 protected:
  CachingDirectoryTest() : LifecycleFixture({.capacity = 3}) {
    fake_.Add("sb-1").address = "10.0.0.7:44064";
  }
  Found Resolve(std::string id = "sb-1", std::string incarnation = "") {
    return Run([=, this] { return directory_.Resolve(Context(), id, incarnation); });
  }
  Found ResolveAs(CallContext context, std::string id = "sb-1") {
    return Run([=, this] { return directory_.Resolve(context, id, ""); });
  }
  absl::Status Explain(absl::Status failure) {
    return Run([=, this] { return directory_.Explain(Context(), "sb-1", failure); });
  }
  static absl::Status LostConnection() {
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, "10.0.0.7:44064: lost",
                     {.metadata = {{"host", "10.0.0.7:44064"}, {"phase", "connect"}}});
  }
};

TEST_F(CachingDirectoryTest, ThreeRequestsThenNone) {
  const Found first = Resolve();
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ((*first)->sandbox_id, "sb-1");
  EXPECT_EQ((*first)->endpoint.url, "http://10.0.0.7:44064");
  EXPECT_EQ((*first)->incarnation, "2023-11-14T22:13:20Z");
  EXPECT_THAT(fake_.requests(), SizeIs(3));
  const Found second = Resolve();
  EXPECT_EQ(second->get(), first->get());
  EXPECT_THAT(fake_.requests(), SizeIs(3));
}

TEST_F(CachingDirectoryTest, ConcurrentCallersShareOneLookUp) {
  fake_.Script("GET /v1/sandboxes/sb-1", {.delay = absl::Seconds(1)});
  FakeTimeTask<Found> a(clock_, loop_, [&] { return directory_.Resolve(Context(), "sb-1", ""); });
  FakeTimeTask<Found> b(clock_, loop_, [&] { return directory_.Resolve(Context(), "sb-1", ""); });
  FakeTimeTask<Found> c(clock_, loop_, [&] { return directory_.Resolve(Context(), "sb-1", ""); });
  a.Cancel();  // the one who started it leaves
  EXPECT_TRUE(a.done());
  EXPECT_THAT(a.Finish(), HasReason("CANCELLED"));
  EXPECT_THAT(b.Finish(), IsOk());
  EXPECT_THAT(c.Finish(), IsOk());
  EXPECT_EQ(fake_.Count("GET /v1/sandboxes/sb-1"), 1);
  EXPECT_EQ(fake_.Count("GET 10.0.0.7:44064/ping"), 1);
}

TEST_F(CachingDirectoryTest, AnOldHintIsCheckedByOneRead) {
  ASSERT_THAT(Resolve(), IsOk());
  clock_.Advance(absl::Seconds(31));
  fake_.ForgetRequests();
  ASSERT_THAT(Resolve(), IsOk());
  EXPECT_THAT(fake_.requests(), SizeIs(1));
  EXPECT_EQ(fake_.Count("GET /v1/sandboxes/sb-1"), 1);
  ASSERT_THAT(Resolve(), IsOk());
  EXPECT_THAT(fake_.requests(), SizeIs(1));
}

TEST_F(CachingDirectoryTest, AKnownSandboxOutlivesItsServer) {
  ASSERT_THAT(Resolve(), IsOk());
  for (const FakeReply& reply : {FakeReply{.refused = true, .times = 4},
                                 FakeReply{.status = 503, .times = 4}, FakeReply{.status = 500}}) {
    clock_.Advance(absl::Seconds(31));
    fake_.Script("GET /v1/sandboxes/sb-1", reply);
    EXPECT_THAT(Resolve(), IsOk());
    fake_.ForgetRequests();
    EXPECT_THAT(Resolve(), IsOk());  // and it is not asked at once again
    EXPECT_THAT(fake_.requests(), SizeIs(0));
  }
  clock_.Advance(absl::Seconds(6));
  EXPECT_THAT(Resolve(), IsOk());
  EXPECT_THAT(fake_.requests(), SizeIs(1));
  // A refusal is an answer, and one that has expired is known to be gone.
  clock_.Advance(absl::Seconds(31));
  fake_.Script("GET /v1/sandboxes/sb-1", {.status = 401});
  EXPECT_THAT(Resolve(), HasReason("UPSTREAM_UNAUTHENTICATED"));
  OnLoop([&] { fake_.Find("sb-1")->expires_at = clock_.Now() + absl::Seconds(5); });
  ASSERT_THAT(Resolve(), IsOk());
  clock_.Advance(absl::Seconds(31));
  fake_.Script("GET /v1/sandboxes/sb-1", {.status = 500});
  EXPECT_THAT(Resolve(), HasReason("UPSTREAM_FAILED"));
}

TEST_F(CachingDirectoryTest, AnotherSandboxOnTheSamePortIsNoticed) {
  ASSERT_THAT(Resolve(), IsOk());
  OnLoop([&] {
    fake_.sandboxes().erase("sb-1");
    fake_.Add("sb-2").address = "10.0.0.7:44064";
  });
  clock_.Advance(absl::Seconds(31));
  EXPECT_THAT(Resolve(), HasReason("SANDBOX_NOT_FOUND"));
}

TEST_F(CachingDirectoryTest, AnExpiredHintIsNotUsed) {
  OnLoop([&] { fake_.Find("sb-1")->expires_at = clock_.Now() + absl::Seconds(5); });
  ASSERT_THAT(Resolve(), IsOk());
  OnLoop([&] { fake_.sandboxes().erase("sb-1"); });
  clock_.Advance(absl::Seconds(6));
  EXPECT_THAT(Resolve(), HasReason("SANDBOX_NOT_FOUND"));
}

TEST_F(CachingDirectoryTest, OnlyRunningSandboxesHaveADaemon) {
  for (const char* state : {"Paused", "Pausing", "Resuming", "Stopping", "Failed", "Terminated",
                            "Pending", "Allocated"}) {
    OnLoop([&] { fake_.Find("sb-1")->state = state; });
    EXPECT_THAT(Resolve(), AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", state),
                                 HasDetail("sandbox_id", "sb-1"), HasMessage(state)));
  }
  EXPECT_EQ(fake_.Count("GET 10.0.0.7:44064/ping"), 0);
  EXPECT_THAT(Resolve("nope"), HasReason("SANDBOX_NOT_FOUND"));
  EXPECT_THAT(Resolve(""), RejectsField("sandbox_id"));
}

TEST_F(CachingDirectoryTest, ADaemonThatStartsIsGivenAMoment) {
  fake_.Script("GET 10.0.0.7*", {.status = 502, .times = 2});
  EXPECT_THAT(Resolve(), IsOk());
  EXPECT_LE(Elapsed(), absl::Seconds(2));
}

TEST_F(CachingDirectoryTest, AndADeadOneIsGivenUp) {
  fake_.Script("GET 10.0.0.7*", {.status = 502, .times = -1});
  EXPECT_THAT(Resolve(), HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_LE(Elapsed(), absl::Seconds(15));
  EXPECT_LE(fake_.Count("GET 10.0.0.7*"), 6);
}

TEST_F(CachingDirectoryTest, AtOnceWhereWaitingIsPointless) {
  fake_.Script("GET 10.0.0.7*", {.status = 401, .times = -1});
  EXPECT_THAT(Resolve(), HasReason("UPSTREAM_UNAUTHENTICATED"));
  EXPECT_EQ(fake_.Count("GET 10.0.0.7*"), 1);
}

TEST_F(CachingDirectoryTest, ASilentSandboxIsBounded) {
  fake_.Script("GET 10.0.0.7*", {.delay = absl::Hours(1), .times = -1});
  EXPECT_THAT(Resolve(), HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_LE(Elapsed(), absl::Seconds(15));
}

TEST_F(CachingDirectoryTest, Incarnations) {
  const std::string now = (*Resolve())->incarnation;
  EXPECT_THAT(Resolve("sb-1", now), IsOk());
  EXPECT_THAT(Resolve("sb-1", "other"), HasReason("STALE_INCARNATION"));
  // A newer one under the same id: the hint is what is stale.
  OnLoop([&] { fake_.Find("sb-1")->created_at += absl::Minutes(1); });
  EXPECT_THAT(Resolve("sb-1", "2023-11-14T22:14:20Z"), IsOk());
  EXPECT_THAT(Resolve("sb-1", now), HasReason("STALE_INCARNATION"));
}

TEST_F(CachingDirectoryTest, ATenantSeesItsOwn) {
  OnLoop([&] { fake_.Find("sb-1")->metadata = OwnLabels({}, {.tenant = "blue"}); });
  CallContext context = Context();
  context.tenant = "blue";
  EXPECT_THAT(ResolveAs(context), IsOk());
  context.tenant = "red";
  EXPECT_THAT(ResolveAs(context), HasReason("NOT_YOUR_SANDBOX"));  // from the hint
  OnLoop([&] { directory_.Forget("sb-1"); });
  EXPECT_THAT(ResolveAs(context), HasReason("NOT_YOUR_SANDBOX"));  // and freshly
  context.tenant = "";
  EXPECT_THAT(ResolveAs(context), IsOk());
}

TEST_F(CachingDirectoryTest, OneKeyOpensNothingForAnother) {
  fake_.required_key = "CANARYKEY";
  ASSERT_THAT(Resolve(), IsOk());
  CallContext other = Context();
  other.api_key = "another";
  EXPECT_THAT(ResolveAs(other), HasReason("UPSTREAM_UNAUTHENTICATED"));
  // And its failure costs the first one nothing but a look.
  EXPECT_THAT(Resolve(), IsOk());
}

TEST_F(CachingDirectoryTest, TheLeastRecentlyUsedGoesFirst) {
  for (int i = 2; i <= 4; ++i) fake_.Add("sb-" + std::to_string(i));
  for (const char* id : {"sb-1", "sb-2", "sb-3", "sb-1", "sb-4"}) ASSERT_THAT(Resolve(id), IsOk());
  EXPECT_EQ(directory_.size(), 3u);
  fake_.ForgetRequests();
  for (const char* id : {"sb-1", "sb-3", "sb-4"}) ASSERT_THAT(Resolve(id), IsOk());
  EXPECT_THAT(fake_.requests(), SizeIs(0));
  ASSERT_THAT(Resolve("sb-2"), IsOk());
  EXPECT_THAT(fake_.requests(), SizeIs(3));
}

TEST_F(CachingDirectoryTest, ForgetAndRemember) {
  ASSERT_THAT(Resolve(), IsOk());
  OnLoop([&] { directory_.Forget("sb-1"); });
  EXPECT_EQ(directory_.size(), 0u);
  const auto reading = Run([&] { return client_.Get(Context(), "sb-1"); });
  OnLoop([&] { directory_.Remember(Context(), reading->record, {.url = "http://new:1"}); });
  fake_.ForgetRequests();
  EXPECT_EQ((*Resolve())->endpoint.url, "http://new:1");
  EXPECT_THAT(fake_.requests(), SizeIs(0));
}

TEST_F(CachingDirectoryTest, ExplainsWhyADaemonIsSilent) {
  ASSERT_THAT(Resolve(), IsOk());
  EXPECT_THAT(Explain(LostConnection()),
              AllOf(HasReason("SANDBOX_UNREACHABLE"), HasDetail("endpoint", "10.0.0.7:44064"),
                    HasDetail("phase", "connect"), HasMessage("lost")));
  EXPECT_EQ(directory_.size(), 0u);
  OnLoop([&] { fake_.Find("sb-1")->state = "Paused"; });
  EXPECT_THAT(Explain(LostConnection()),
              AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", "Paused")));
  OnLoop([&] { fake_.sandboxes().erase("sb-1"); });
  EXPECT_THAT(Explain(LostConnection()), HasReason("SANDBOX_NOT_FOUND"));
}

// Was SANDBOX_UNREACHABLE, whose advice is to look for another way to the daemon.
TEST_F(CachingDirectoryTest, ADaemonThatIsTooSlowIsNotCalledUnreachable) {
  const auto timeout = [](const char* phase) {
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT,
                     "10.0.0.7:44064 did not complete its answer within 10s",
                     {.metadata = {{"host", "10.0.0.7:44064"}, {"phase", phase}}});
  };
  ASSERT_THAT(Resolve(), IsOk());
  EXPECT_THAT(Explain(timeout("answer")),
              AllOf(HasReason("UPSTREAM_TIMEOUT"), HasDetail("endpoint", "10.0.0.7:44064"),
                    HasDetail("sandbox_id", "sb-1"), HasDetail("phase", "answer"),
                    HasMessage("within 10s")));
  EXPECT_EQ(directory_.size(), 0u);
  EXPECT_THAT(Explain(timeout("connect")), HasReason("SANDBOX_UNREACHABLE"));
  OnLoop([&] { fake_.Find("sb-1")->state = "Paused"; });
  EXPECT_THAT(Explain(timeout("answer")), HasReason("SANDBOX_NOT_RUNNING"));
}

TEST_F(CachingDirectoryTest, ExplainsWithoutTheServer) {
  fake_.Script("GET /v1/sandboxes/sb-1", {.delay = absl::Hours(1), .times = -1});
  EXPECT_THAT(Explain(LostConnection()), HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_LE(Elapsed(), absl::Seconds(4));
}

TEST_F(CachingDirectoryTest, ACancelledRequestNeedsNoExplanation) {
  fake_.ForgetRequests();
  EXPECT_THAT(Explain(MakeError(ErrorReason::ERROR_REASON_CANCELLED, "gone")),
              HasReason("CANCELLED"));
  EXPECT_THAT(fake_.requests(), SizeIs(0));
}

TEST_F(CachingDirectoryTest, AfterShutdownItAnswersCancelled) {
  OnLoop([&] { tasks_.CancelAll(); });
  EXPECT_THAT(Resolve(), HasReason("CANCELLED"));
}

}  // namespace
}  // namespace bridge
