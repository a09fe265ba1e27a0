// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/snapshots.h"

#include "bridge/opensandbox/labels.h"
#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SnapshotsTest : public LifecycleFixture {
 protected:
  SnapshotsTest() { fake_.Add("sb-1").metadata = OwnLabels({}, {.tenant = "blue"}); }
  CallContext As(std::string tenant) {
    CallContext context = Context();
    context.tenant = std::move(tenant);
    return context;
  }
  absl::StatusOr<SnapshotRecord> Create(std::string tenant = "",
                                        absl::Duration wait = absl::Seconds(60)) {
    return Run([=, this] { return CreateSnapshot(client_, As(tenant), "sb-1", "", "gold", wait); });
  }
  absl::StatusOr<SnapshotList> List(std::string tenant = "", SnapshotListRequest request = {}) {
    return Run([=, this] { return ListSnapshots(client_, As(tenant), request); });
  }
  absl::Status Delete(std::string id, std::string tenant = "") {
    return Run([=, this] { return DeleteSnapshot(client_, As(tenant), id); });
  }
};

TEST_F(SnapshotsTest, ReturnsWhenReady) {
  const auto snapshot = Create();
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(snapshot->state, SnapshotState::kReady);
  EXPECT_EQ(snapshot->name, "gold");
  EXPECT_EQ(snapshot->sandbox_id, "sb-1");
  EXPECT_LE(Elapsed(), absl::Milliseconds(200));
}

TEST_F(SnapshotsTest, OrAsItIs) {
  const auto snapshot = Create("", absl::ZeroDuration());
  EXPECT_EQ(snapshot->state, SnapshotState::kCreating);
  fake_.Script("GET /v1/snapshots/*", {.status = 500, .times = -1});
  const auto unseen = Create("", absl::Seconds(3));
  ASSERT_THAT(unseen, IsOk());  // it was made, whoever can look at it
  EXPECT_EQ(unseen->state, SnapshotState::kCreating);
}

TEST_F(SnapshotsTest, AFailureIsAState) {
  fake_.Script(
      "GET /v1/snapshots/*",
      {.status = 200, .body = R"({"id":"s","status":{"state":"Failed","message":"disk"}})"});
  const auto snapshot = Create();
  EXPECT_EQ(snapshot->state, SnapshotState::kFailed);
  EXPECT_EQ(snapshot->state_message, "disk");
}

TEST_F(SnapshotsTest, OnlyARunningSandboxHasOne) {
  OnLoop([&] { fake_.Find("sb-1")->state = "Paused"; });
  EXPECT_THAT(Create(), HasReason("SANDBOX_NOT_RUNNING"));
  fake_.Script("POST *", {.status = 501, .body = R"({"code":"SNAPSHOT::NOT_IMPLEMENTED"})"});
  EXPECT_THAT(Create(),
              AllOf(HasReason("UNSUPPORTED_FEATURE"), HasDetail("feature", "sandboxes.snapshots")));
}

TEST_F(SnapshotsTest, ListsAndDeletes) {
  const auto made = Create();
  ASSERT_THAT(List()->snapshots, SizeIs(1));
  EXPECT_THAT(List("", {.sandbox_id = "other"})->snapshots, SizeIs(0));
  EXPECT_THAT(Delete(made->id), IsOk());
  EXPECT_THAT(List()->snapshots, SizeIs(0));
  EXPECT_THAT(Delete(made->id), HasReason("SNAPSHOT_NOT_FOUND"));
  fake_.Script("DELETE *", {.status = 409, .body = R"({"code":"SNAPSHOT::DELETE_CONFLICT"})"});
  EXPECT_THAT(Delete("in-use"), HasReason("CONFLICT"));
}

TEST_F(SnapshotsTest, Pages) {
  fake_.Script("GET *",
               {.status = 200, .body = R"({"items":[{"id":"a"}],"pagination":{"page":1,"pageSize":1,
                                     "totalItems":2,"hasNextPage":true}})"});
  const auto first = List("", {.page_size = 1});
  ASSERT_FALSE(first->next_page_token.empty());
  fake_.Script("GET *", {.status = 200, .body = R"({"items":[{"id":"b"}]})"});
  const auto second = List("", {.page_size = 1, .page_token = first->next_page_token});
  EXPECT_EQ(second->snapshots[0].id, "b");
  EXPECT_TRUE(second->next_page_token.empty());
  EXPECT_EQ(fake_.requests()[1].query, "page=2&pageSize=1");
  EXPECT_THAT(List("", {.page_size = 2, .page_token = first->next_page_token}),
              RejectsField("page_token"));
  fake_.Script("GET *",
               {.status = 200, .body = R"({"items":[],"pagination":{"hasNextPage":true}})"});
  EXPECT_TRUE(List()->next_page_token.empty());
}

TEST_F(SnapshotsTest, TenantsKeepTheirs) {
  const auto made = Create("blue");
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->name, "gold");  // without what the bridge added
  EXPECT_THAT(fake_.requests()[1].body, HasSubstr("gold@sandbox-bridge/blue"));
  EXPECT_EQ(List("blue")->snapshots[0].name, "gold");
  EXPECT_THAT(List("red")->snapshots, SizeIs(0));
  EXPECT_THAT(Create("red"), HasReason("NOT_YOUR_SANDBOX"));
  EXPECT_THAT(Delete(made->id, "red"), HasReason("SNAPSHOT_NOT_FOUND"));
  const auto check = [&](std::string tenant) {
    return Run([=, this, id = made->id] { return CheckSnapshot(client_, As(tenant), id); });
  };
  EXPECT_THAT(check("blue"), IsOk());
  EXPECT_THAT(check("red"), HasReason("SNAPSHOT_NOT_FOUND"));
  EXPECT_THAT(check(""), IsOk());
  // It outlives its sandbox, and so does whose it is.
  OnLoop([&] { fake_.sandboxes().clear(); });
  EXPECT_THAT(check("blue"), IsOk());
  EXPECT_THAT(Delete(made->id, "blue"), IsOk());
}

TEST_F(SnapshotsTest, SnapshotsOfNobodyAreNoTenants) {
  const auto made = Create();
  EXPECT_THAT(List("blue")->snapshots, SizeIs(0));
  EXPECT_THAT(Delete(made->id, "blue"), HasReason("SNAPSHOT_NOT_FOUND"));
}

}  // namespace
}  // namespace bridge
