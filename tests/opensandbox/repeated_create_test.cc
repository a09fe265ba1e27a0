// SPDX-License-Identifier: Apache-2.0
//
// SandboxCreator: creates that are repeated with their request_id.
#include "bridge/opensandbox/labels.h"
#include "tests/opensandbox/creator_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;

class RepeatedCreateTest : public CreatorFixture {};

TEST_F(RepeatedCreateTest, ARepeatAdopts) {
  const Result first = Create(Spec(), "r-1");
  ASSERT_THAT(first, IsOk());
  const Result second = Create(Spec(), "r-1");
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(second->adopted);
  EXPECT_EQ(second->record.id, first->record.id);
  EXPECT_EQ(RequestIdOf(second->record), "r-1");
  EXPECT_EQ(Posts(), 1);
  ASSERT_THAT(Create(Spec(), "r-2"), IsOk());
  EXPECT_EQ(Posts(), 2);
}

TEST_F(RepeatedCreateTest, OtherContentIsRefused) {
  ASSERT_THAT(Create(Spec(), "r-1"), IsOk());
  CreateSpec other = Spec();
  other.env = {{"A", "1"}};
  const Result reused = Create(other, "r-1");
  EXPECT_THAT(reused,
              AllOf(HasReason("REQUEST_ID_REUSED"), HasDetail("existing_sandbox_id", "sb-1")));
  EXPECT_EQ(Posts(), 1);
  EXPECT_EQ(Deletes(), 0);
}

TEST_F(RepeatedCreateTest, TwoMatchesAreNotChosenFrom) {
  ASSERT_THAT(Create(Spec(), "r-1"), IsOk());
  OnLoop([&] {
    const auto labels = fake_.Find("sb-1")->metadata;
    fake_.Add("sb-x").metadata = labels;
  });
  EXPECT_THAT(Create(Spec(), "r-1"), HasReason("AMBIGUOUS_ASSIGNMENT"));
  EXPECT_EQ(Posts(), 1);
}

// Another replica got the same request at the same time, and its sandbox appears while ours is
// made.
TEST_F(RepeatedCreateTest, OfTwoReplicasTheOlderSandboxStays) {
  for (const bool ours_is_older : {true, false}) {
    const std::string request_id = ours_is_older ? "r-1" : "r-2";
    const std::string theirs = ours_is_older ? "younger" : "older";
    fake_.on_create = [&](FakeSandbox& sandbox) {
      const auto labels = sandbox.metadata;
      const absl::Time made = sandbox.created_at;
      FakeSandbox& other = fake_.Add(theirs);
      other.metadata = labels;
      other.created_at = made + absl::Seconds(ours_is_older ? 1 : -1);
    };
    const int deleted = Deletes();
    const Result created = Create(Spec(), request_id);
    ASSERT_THAT(created, IsOk());
    EXPECT_EQ(created->adopted, !ours_is_older);
    EXPECT_EQ(created->record.id == theirs, !ours_is_older);
    EXPECT_EQ(Deletes() - deleted, ours_is_older ? 0 : 1) << "the younger one is given back";
    EXPECT_NE(fake_.Find(theirs), nullptr) << "theirs is never ours to delete";
  }
}

TEST_F(RepeatedCreateTest, AListThatFailsAfterwardsTakesNothingAway) {
  fake_.on_create = [this](FakeSandbox&) {
    for (int i = 0; i < 5; ++i) fake_.Script("GET /v1/sandboxes", {.status = 500, .body = "{}"});
  };
  const Result created = Create(Spec(), "r-1");
  ASSERT_THAT(created, IsOk());
  EXPECT_FALSE(created->adopted);
  EXPECT_EQ(Deletes(), 0);
}

TEST_F(RepeatedCreateTest, ACloneThatInheritedTheTagIsNoMatch) {
  ASSERT_THAT(Create(Spec(), "r-1"), IsOk());
  OnLoop([&] {
    const auto labels = fake_.Find("sb-1")->metadata;
    FakeSandbox& clone = fake_.Add("clone");
    clone.metadata = labels;
    clone.snapshot_id = "snap-1";
  });
  EXPECT_EQ(Create(Spec(), "r-1")->record.id, "sb-1");
  // Also when the original is gone.
  OnLoop([&] { fake_.sandboxes().erase("sb-1"); });
  const Result again = Create(Spec(), "r-1");
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->adopted);
  EXPECT_NE(again->record.id, "clone");
}

TEST_F(RepeatedCreateTest, OneThatHasEndedIsNotMadeAgain) {
  ASSERT_THAT(Create(Spec(), "r-1"), IsOk());
  OnLoop([&] { fake_.Find("sb-1")->state = "Terminated"; });
  EXPECT_THAT(Create(Spec(), "r-1"),
              AllOf(HasReason("SANDBOX_FAILED"), HasMessage("new request_id")));
  EXPECT_EQ(Posts(), 1);
  EXPECT_EQ(Deletes(), 0);
}

TEST_F(RepeatedCreateTest, WithoutALookNothingIsMade) {
  fake_.Script("GET /v1/sandboxes", {.status = 500});
  EXPECT_THAT(Create(Spec(), "r-1"), HasReason("UPSTREAM_FAILED"));
  EXPECT_EQ(Posts(), 0);
}

TEST_F(RepeatedCreateTest, TwoAtOnceMakeOne) {
  fake_.Script("POST /v1/sandboxes", {.delay = absl::Seconds(2)});
  FakeTimeTask<Result> a(clock_, loop_, Body(Spec(), "r-1"));
  FakeTimeTask<Result> b(clock_, loop_, Body(Spec(), "r-1"));
  ASSERT_THAT(a.Finish(), IsOk());
  ASSERT_THAT(b.Finish(), IsOk());
  EXPECT_EQ(a.Finish()->record.id, b.Finish()->record.id);
  EXPECT_FALSE(a.Finish()->adopted);
  EXPECT_TRUE(b.Finish()->adopted);
  EXPECT_EQ(Posts(), 1);
}

TEST_F(RepeatedCreateTest, ARepeatAfterACancelDoesNotAdoptTheDying) {
  fake_.prototype.state = "Pending";
  fake_.Script("DELETE *", {.delay = absl::Seconds(3)});
  FakeTimeTask<Result> first(clock_, loop_, Body(Spec(), "r-1"));
  first.Pass(absl::Seconds(1));
  first.Cancel();
  (void)first.Finish();
  fake_.prototype.state = "Running";
  const Result second = Create(Spec(), "r-1");
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->adopted);
  EXPECT_EQ(Posts(), 2);
  EXPECT_EQ(fake_.size(), 1u);
}

TEST_F(RepeatedCreateTest, ARepeatThatCannotWaitIsTold) {
  fake_.Script("POST /v1/sandboxes", {.delay = absl::Seconds(30)});
  FakeTimeTask<Result> first(clock_, loop_, Body(Spec(), "r-1"));
  first.Pass(absl::Seconds(1));
  EXPECT_THAT(Create(Spec(), "r-1", absl::Seconds(5)),
              AllOf(HasReason("CONFLICT"), HasMessage("under way")));
  EXPECT_THAT(first.Finish(), IsOk());
}

TEST_F(RepeatedCreateTest, TenantsDoNotShareRequestIds) {
  CallContext blue = Context();
  blue.tenant = "blue";
  CallContext red = Context();
  red.tenant = "red";
  const auto create = [this](CallContext context) {
    return Run([=, this] { return creator_.Create(context, Spec(), "r-1", absl::Seconds(60)); });
  };
  ASSERT_THAT(create(blue), IsOk());
  const Result other = create(red);
  ASSERT_THAT(other, IsOk());
  EXPECT_FALSE(other->adopted);
  EXPECT_TRUE(create(blue)->adopted);
}

TEST_F(RepeatedCreateTest, AFailureOfAnAdoptedOneDeletesNothing) {
  ASSERT_THAT(Create(Spec(), "r-1"), IsOk());
  OnLoop([&] { fake_.Find("sb-1")->daemon_up = false; });
  EXPECT_THAT(Create(Spec(), "r-1", absl::Seconds(3)), HasReason("READY_TIMEOUT"));
  Settle();
  EXPECT_EQ(Deletes(), 0);
}

}  // namespace
}  // namespace bridge
