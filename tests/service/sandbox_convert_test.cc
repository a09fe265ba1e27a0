// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/sandbox_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bridge/base/error.h"
#include "bridge/opensandbox/labels.h"
#include "bridge/opensandbox/timestamps.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(CreateSpecFromProto, Defaults) {
  v1::SandboxSpec spec;
  spec.set_image("img");
  const CreateSpec result = CreateSpecFromProto(spec);
  EXPECT_EQ(result.image, "img");
  EXPECT_EQ(result.ttl, absl::Hours(1));
  EXPECT_FALSE(result.network_policy.has_value());
  EXPECT_TRUE(result.entrypoint.empty());  // the creator's defaults, not the digest's business
}

TEST(CreateSpecFromProto, Lifetimes) {
  v1::SandboxSpec spec;
  spec.set_never(true);
  EXPECT_EQ(CreateSpecFromProto(spec).ttl, std::nullopt);
  spec.mutable_ttl()->set_seconds(90);
  spec.mutable_ttl()->set_nanos(500'000'000);
  EXPECT_EQ(CreateSpecFromProto(spec).ttl, absl::Milliseconds(90'500));
}

TEST(CreateSpecFromProto, EveryField) {
  v1::SandboxSpec spec;
  spec.set_snapshot_id("s");
  spec.mutable_image_auth()->set_username("u");
  spec.mutable_image_auth()->set_password("p");
  spec.add_entrypoint("sh");
  spec.add_env()->set_name("A");
  spec.mutable_env(0)->set_value("1");
  (*spec.mutable_metadata())["k"] = "v";
  (*spec.mutable_resource_limits())["cpu"] = "1";
  (*spec.mutable_resource_requests())["cpu"] = "2";
  spec.set_platform("linux/amd64");
  spec.mutable_network_policy()->set_default_action(v1::NetworkPolicy::ACTION_ALLOW);
  auto* rule = spec.mutable_network_policy()->add_rules();
  rule->set_action(v1::NetworkPolicy::ACTION_DENY);
  rule->set_target("t");
  spec.set_secure_access(true);
  auto* named = spec.add_volumes();
  named->set_name("n");
  named->set_mount_path("/n");
  named->set_read_only(true);
  named->set_sub_path("sub");
  named->mutable_named()->set_claim("c");
  named->mutable_named()->set_create_if_missing(false);
  named->mutable_named()->set_delete_with_sandbox(true);
  named->mutable_named()->set_size("1Gi");
  spec.add_volumes()->set_host_path("/h");
  (*spec.mutable_extensions())["e"] = "x";

  const CreateSpec result = CreateSpecFromProto(spec);
  EXPECT_EQ(result.snapshot_id, "s");
  EXPECT_EQ(result.image, "");
  EXPECT_EQ(result.image_user, "u");
  EXPECT_EQ(result.image_password, "p");
  EXPECT_THAT(result.entrypoint, ElementsAre("sh"));
  EXPECT_THAT(result.env, ElementsAre(Pair("A", "1")));
  EXPECT_THAT(result.metadata, ElementsAre(Pair("k", "v")));
  EXPECT_THAT(result.resource_limits, ElementsAre(Pair("cpu", "1")));
  EXPECT_THAT(result.resource_requests, ElementsAre(Pair("cpu", "2")));
  EXPECT_EQ(result.platform, "linux/amd64");
  EXPECT_EQ(result.network_policy->default_action, PolicyAction::kAllow);
  EXPECT_EQ(result.network_policy->rules[0].action, PolicyAction::kDeny);
  EXPECT_TRUE(result.secure_access);
  ASSERT_THAT(result.volumes, SizeIs(2));
  EXPECT_TRUE(result.volumes[0].read_only);
  EXPECT_FALSE(result.volumes[0].create_if_missing);
  EXPECT_TRUE(result.volumes[0].delete_with_sandbox);
  EXPECT_EQ(result.volumes[0].sub_path, "sub");
  EXPECT_EQ(result.volumes[1].host_path, "/h");
  EXPECT_THAT(result.extensions, ElementsAre(Pair("e", "x")));
}

TEST(CreateSpecFromProto, AMissingVolumeIsMadeUnlessToldNotTo) {
  v1::SandboxSpec spec;
  spec.add_volumes()->mutable_named()->set_claim("c");
  EXPECT_TRUE(CreateSpecFromProto(spec).volumes[0].create_if_missing);
}

TEST(States, EveryOneThereAndBack) {
  std::set<int> seen;
  for (int state = v1::SANDBOX_STATE_PENDING; state <= v1::SANDBOX_STATE_UNKNOWN; ++state) {
    v1::ListSandboxesRequest request;
    request.add_states(static_cast<v1::SandboxState>(state));
    const SandboxState value = SandboxFilterFromProto(request).states[0];
    EXPECT_EQ(SandboxStateToProto(value), state);
    seen.insert(static_cast<int>(value));
  }
  EXPECT_THAT(seen, SizeIs(9));
}

TEST(SandboxToProto, EverythingButTheBridgesOwnLabels) {
  CreateSpec spec;
  spec.image = "img";
  SandboxRecord record;
  record.id = "sb-1";
  record.state = SandboxState::kUnknown;
  record.state_text = "Allocated";
  record.state_reason = "IP_ASSIGNED";
  record.state_message = "m";
  record.image = "img";
  record.entrypoint = {"tail", "-f"};
  record.metadata = OwnLabels(spec, {.request_id = "r-1", .tenant = "blue"});
  record.metadata["team"] = "core";
  record.platform = "linux/amd64";
  record.created_at = ParseTimestamp("2026-11-29T16:46:38.290233Z");
  v1::Sandbox proto;
  SandboxToProto(record, &proto);
  EXPECT_EQ(proto.sandbox_id(), "sb-1");
  EXPECT_EQ(proto.state(), v1::SANDBOX_STATE_UNKNOWN);
  EXPECT_EQ(proto.upstream_state(), "Allocated");
  EXPECT_EQ(proto.state_reason(), "IP_ASSIGNED");
  EXPECT_EQ(proto.request_id(), "r-1");
  ASSERT_EQ(proto.metadata().size(), 1u);
  EXPECT_EQ(proto.metadata().at("team"), "core");
  EXPECT_EQ(proto.created_at().seconds(), 1795970798);
  EXPECT_EQ(proto.created_at().nanos(), 290233000);
  EXPECT_FALSE(proto.has_expires_at());  // never
  EXPECT_EQ(proto.incarnation(), "2026-11-29T16:46:38.290233Z");
}

TEST(DeletionToProto, VerdictAndEvidence) {
  const struct {
    DeletionVerdict value;
    v1::DeleteSandboxResponse::Verdict proto;
  } kCases[] = {
      {DeletionVerdict::kConfirmedGone, v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE},
      {DeletionVerdict::kAlreadyGone, v1::DeleteSandboxResponse::VERDICT_ALREADY_GONE},
      {DeletionVerdict::kAcceptedUnconfirmed,
       v1::DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED},
  };
  for (const auto& c : kCases) {
    v1::DeleteSandboxResponse proto;
    DeletionToProto({.verdict = c.value,
                     .evidence = {{.action = "DELETE",
                                   .status = 204,
                                   .detail = "accepted",
                                   .at = absl::FromUnixSeconds(7)}}},
                    &proto);
    EXPECT_EQ(proto.verdict(), c.proto);
    ASSERT_EQ(proto.evidence_size(), 1);
    EXPECT_EQ(proto.evidence(0).action(), "DELETE");
    EXPECT_EQ(proto.evidence(0).upstream_status(), 204);
    EXPECT_EQ(proto.evidence(0).at().seconds(), 7);
  }
}

TEST(ProbeToProto, TheThreeObservations) {
  v1::ProbeSandboxResponse proto;
  ProbeToProto(
      {.sight = Probe::Sight::kExists, .record = {.id = "sb-1"}, .daemon = Probe::Daemon::kSilent},
      &proto);
  EXPECT_EQ(proto.exists().sandbox().sandbox_id(), "sb-1");
  EXPECT_EQ(proto.exists().daemon(), v1::ProbeSandboxResponse::DAEMON_STATE_SILENT);
  ProbeToProto({.sight = Probe::Sight::kNotFound}, &proto);
  EXPECT_TRUE(proto.has_not_found());
  ProbeToProto({.sight = Probe::Sight::kFailed,
                .failure = MakeError(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, "down")},
               &proto);
  EXPECT_EQ(proto.failed().reason(), "UPSTREAM_UNAVAILABLE");
  EXPECT_EQ(proto.failed().message(), "down");
}

TEST(PortUrlToProto, AllOfIt) {
  v1::Endpoint proto;
  PortUrlToProto({.url = "http://h",
                  .websocket_url = "ws://h",
                  .headers = {{"A", "1"}},
                  .through_server = true,
                  .expires_at = absl::FromUnixSeconds(9),
                  .notes = {"n"}},
                 &proto);
  EXPECT_EQ(proto.url(), "http://h");
  EXPECT_EQ(proto.websocket_url(), "ws://h");
  EXPECT_EQ(proto.headers(0).name(), "A");
  EXPECT_EQ(proto.route(), v1::ENDPOINT_ROUTE_SERVER_PROXY);
  EXPECT_EQ(proto.expires_at().seconds(), 9);
  EXPECT_EQ(proto.notes(0), "n");
}

TEST(PolicyToProto, Rules) {
  v1::NetworkPolicyStatus proto;
  PolicyToProto({.policy = {.default_action = PolicyAction::kDeny,
                            .rules = {{.action = PolicyAction::kAllow, .target = "a"}}},
                 .enforcement = "dns"},
                &proto);
  EXPECT_EQ(proto.policy().default_action(), v1::NetworkPolicy::ACTION_DENY);
  EXPECT_EQ(proto.policy().rules(0).action(), v1::NetworkPolicy::ACTION_ALLOW);
  EXPECT_EQ(proto.enforcement(), "dns");
}

TEST(SnapshotToProto, States) {
  const struct {
    SnapshotState value;
    v1::Snapshot::State proto;
  } kCases[] = {{SnapshotState::kCreating, v1::Snapshot::STATE_CREATING},
                {SnapshotState::kReady, v1::Snapshot::STATE_READY},
                {SnapshotState::kFailed, v1::Snapshot::STATE_FAILED},
                {SnapshotState::kDeleting, v1::Snapshot::STATE_DELETING},
                {SnapshotState::kUnknown, v1::Snapshot::STATE_UNKNOWN}};
  for (const auto& c : kCases) {
    v1::Snapshot proto;
    SnapshotToProto({.id = "s", .sandbox_id = "sb", .name = "n", .state = c.value}, &proto);
    EXPECT_EQ(proto.state(), c.proto);
    EXPECT_EQ(proto.name(), "n");
    EXPECT_FALSE(proto.has_created_at());
  }
}

TEST(DiagnosticsKindFromProto, Kinds) {
  using Kind = v1::GetDiagnosticsRequest;
  EXPECT_EQ(DiagnosticsKindFromProto(Kind::KIND_UNSPECIFIED), DiagnosticsKind::kSummary);
  EXPECT_EQ(DiagnosticsKindFromProto(Kind::KIND_INSPECT), DiagnosticsKind::kInspect);
  EXPECT_EQ(DiagnosticsKindFromProto(Kind::KIND_EVENTS), DiagnosticsKind::kEvents);
  EXPECT_EQ(DiagnosticsKindFromProto(Kind::KIND_LOGS), DiagnosticsKind::kLogs);
}

TEST(SampleToProto, Numbers) {
  v1::ResourceUsage proto;
  SampleToProto({.cpu_count = 2,
                 .cpu_used_percent = 1.5,
                 .memory_total_bytes = 3,
                 .memory_used_bytes = 1,
                 .at = absl::FromUnixSeconds(5)},
                &proto);
  EXPECT_EQ(proto.cpu_count(), 2);
  EXPECT_EQ(proto.memory_total_bytes(), 3);
  EXPECT_EQ(proto.at().seconds(), 5);
}

}  // namespace
}  // namespace bridge
