// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_probe.h"

#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::SizeIs;

class SandboxProbeTest : public LifecycleFixture {
 protected:
  SandboxProbeTest() { fake_.Add("sb-1").address = "10.0.0.7:44064"; }
  absl::StatusOr<Probe> Look(bool check_daemon = true, std::string incarnation = "") {
    return Run([=, this] {
      return ProbeSandbox(client_, finder_, Context(), "sb-1", incarnation, check_daemon);
    });
  }
};

TEST_F(SandboxProbeTest, Exists) {
  const auto probe = Look(false);
  EXPECT_EQ(probe->sight, Probe::Sight::kExists);
  EXPECT_EQ(probe->record.id, "sb-1");
  EXPECT_EQ(probe->daemon, Probe::Daemon::kNotAsked);
  EXPECT_THAT(fake_.requests(), SizeIs(1));
  EXPECT_EQ(Look()->daemon, Probe::Daemon::kAnswers);
}

TEST_F(SandboxProbeTest, ADeadSandboxMayStillReadRunning) {
  OnLoop([&] { fake_.Find("sb-1")->daemon_up = false; });
  const auto probe = Look();
  EXPECT_EQ(probe->sight, Probe::Sight::kExists);
  EXPECT_EQ(probe->record.state, SandboxState::kRunning);
  EXPECT_EQ(probe->daemon, Probe::Daemon::kSilent);
}

TEST_F(SandboxProbeTest, APausedOneIsNotAsked) {
  OnLoop([&] { fake_.Find("sb-1")->state = "Paused"; });
  EXPECT_EQ(Look()->daemon, Probe::Daemon::kSilent);
  EXPECT_THAT(fake_.requests(), SizeIs(1));
}

TEST_F(SandboxProbeTest, ADaemonThatRefusesIsThere) {
  fake_.Script("GET 10.0.0.7*", {.status = 401});
  EXPECT_EQ(Look()->daemon, Probe::Daemon::kAnswers);
}

TEST_F(SandboxProbeTest, WhatCannotBeAskedIsNotSilent) {
  fake_.Script("GET /v1/sandboxes/sb-1/endpoints/44772", {.status = 401});
  EXPECT_EQ(Look()->daemon, Probe::Daemon::kNotAsked);
}

TEST_F(SandboxProbeTest, NotFoundAndFailedAreNotTheSame) {
  fake_.Script("GET *", {.status = 404, .body = R"({"detail":"Not Found"})"});
  auto probe = Look();
  EXPECT_EQ(probe->sight, Probe::Sight::kFailed);
  EXPECT_THAT(probe->failure, HasReason("UPSTREAM_PROTOCOL"));
  fake_.Script("GET *", {.status = 503, .times = 4});
  EXPECT_THAT(Look()->failure, HasReason("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(Look(true, "old")->failure, HasReason("STALE_INCARNATION"));
  OnLoop([&] { fake_.sandboxes().clear(); });
  EXPECT_EQ(Look()->sight, Probe::Sight::kNotFound);
}

TEST_F(SandboxProbeTest, NeverChangesAnything) {
  (void)Look();
  for (const SeenRequest& seen : fake_.requests()) EXPECT_EQ(seen.method, "GET");
}

TEST_F(SandboxProbeTest, OnlyACancelledCallFails) {
  fake_.Script("GET *", {.delay = absl::Seconds(20)});
  FakeTimeTask<absl::StatusOr<Probe>> task(
      clock_, loop_, [&] { return ProbeSandbox(client_, finder_, Context(), "sb-1", "", true); });
  task.Pass(absl::Seconds(1));
  task.Cancel();
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
}

}  // namespace
}  // namespace bridge
