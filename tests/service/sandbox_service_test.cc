// SPDX-License-Identifier: Apache-2.0
//
// SandboxService over gRPC, on an OpenSandbox in memory.
#include <thread>

#include "tests/service/sandbox_service_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SandboxServiceTest : public SandboxServiceFixture {};

TEST_F(SandboxServiceTest, ALifeFromBirthToProvenDeath) {
  v1::CreateSandboxRequest create = Image();
  create.set_request_id("r-1");
  create.mutable_spec()->mutable_ttl()->set_seconds(5);
  (*create.mutable_spec()->mutable_metadata())["team"] = "core";
  v1::CreateSandboxResponse created;
  ASSERT_THAT(Call(&Stub::CreateSandbox, create, &created), IsOk());
  EXPECT_EQ(created.sandbox().state(), v1::SANDBOX_STATE_RUNNING);
  EXPECT_TRUE(created.ttl_clamped());
  EXPECT_FALSE(created.adopted());
  const std::string id = created.sandbox().sandbox_id();

  v1::GetSandboxRequest get;
  get.set_sandbox_id(id);
  get.set_expected_incarnation(created.sandbox().incarnation());
  v1::Sandbox sandbox;
  ASSERT_THAT(Call(&Stub::GetSandbox, get, &sandbox), IsOk());
  EXPECT_EQ(sandbox.request_id(), "r-1");
  EXPECT_EQ(sandbox.metadata().size(), 1u);

  ASSERT_THAT(Call(&Stub::CreateSandbox, create, &created), IsOk());
  EXPECT_TRUE(created.adopted());
  EXPECT_EQ(created.sandbox().sandbox_id(), id);

  v1::ListSandboxesRequest list;
  list.set_request_id("r-1");
  v1::ListSandboxesResponse listed;
  ASSERT_THAT(Call(&Stub::ListSandboxes, list, &listed), IsOk());
  ASSERT_EQ(listed.sandboxes_size(), 1);
  EXPECT_EQ(listed.total_size(), 1);
  EXPECT_EQ(listed.next_page_token(), "");

  v1::ProbeSandboxRequest probe;
  probe.set_sandbox_id(id);
  probe.set_check_daemon(true);
  v1::ProbeSandboxResponse probed;
  ASSERT_THAT(Call(&Stub::ProbeSandbox, probe, &probed), IsOk());
  EXPECT_EQ(probed.exists().daemon(), v1::ProbeSandboxResponse::DAEMON_STATE_ANSWERS);

  v1::SetExpirationRequest renew;
  renew.set_sandbox_id(id);
  renew.mutable_ttl()->set_seconds(600);
  v1::SetExpirationResponse renewed;
  ASSERT_THAT(Call(&Stub::SetExpiration, renew, &renewed), IsOk());
  EXPECT_GT(renewed.expires_at().seconds(), sandbox.expires_at().seconds());

  v1::UpdateMetadataRequest update;
  update.set_sandbox_id(id);
  (*update.mutable_set())["new"] = "1";
  update.add_delete_("team");
  ASSERT_THAT(Call(&Stub::UpdateMetadata, update, &sandbox), IsOk());
  EXPECT_EQ(sandbox.metadata().size(), 1u);
  EXPECT_EQ(sandbox.metadata().at("new"), "1");

  v1::PauseSandboxRequest pause;
  pause.set_sandbox_id(id);
  v1::PauseSandboxResponse paused;
  ASSERT_THAT(Call(&Stub::PauseSandbox, pause, &paused), IsOk());
  EXPECT_TRUE(paused.settled());
  EXPECT_EQ(paused.sandbox().state(), v1::SANDBOX_STATE_PAUSED);
  v1::ResumeSandboxRequest resume;
  resume.set_sandbox_id(id);
  v1::ResumeSandboxResponse resumed;
  ASSERT_THAT(Call(&Stub::ResumeSandbox, resume, &resumed), IsOk());
  EXPECT_TRUE(resumed.settled());

  v1::DeleteSandboxRequest remove;
  remove.set_sandbox_id(id);
  v1::DeleteSandboxResponse removed;
  ASSERT_THAT(Call(&Stub::DeleteSandbox, remove, &removed), IsOk());
  EXPECT_EQ(removed.verdict(), v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
  EXPECT_EQ(removed.evidence_size(), 2);
  ASSERT_THAT(Call(&Stub::DeleteSandbox, remove, &removed), IsOk());
  EXPECT_EQ(removed.verdict(), v1::DeleteSandboxResponse::VERDICT_ALREADY_GONE);
  EXPECT_THAT(Call(&Stub::GetSandbox, get, &sandbox),
              AllOf(HasReason("SANDBOX_NOT_FOUND"), HasDetail("sandbox_id", id)));
  ASSERT_THAT(Call(&Stub::ProbeSandbox, probe, &probed), IsOk());
  EXPECT_TRUE(probed.has_not_found());
}

TEST_F(SandboxServiceTest, PortsPolicyDiagnosticsSnapshots) {
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(Image(), &sandbox), IsOk());
  const std::string id = sandbox.sandbox_id();

  v1::GetEndpointRequest port;
  port.set_sandbox_id(id);
  port.set_port(8000);
  v1::Endpoint endpoint;
  ASSERT_THAT(Call(&Stub::GetEndpoint, port, &endpoint), IsOk());
  EXPECT_EQ(endpoint.route(), v1::ENDPOINT_ROUTE_DIRECT);
  EXPECT_THAT(endpoint.websocket_url(), HasSubstr("ws://"));
  EXPECT_THAT(endpoint.DebugString(), Not(HasSubstr("CANARY")));
  port.set_route(v1::ENDPOINT_ROUTE_SERVER_PROXY);
  ASSERT_THAT(Call(&Stub::GetEndpoint, port, &endpoint), IsOk());
  EXPECT_THAT(endpoint.url(), HasSubstr("srv:8080/v1/sandboxes/"));
  EXPECT_THAT(endpoint.DebugString(), Not(HasSubstr("CANARY")));

  v1::CreateSignedEndpointRequest sign;
  sign.set_sandbox_id(id);
  sign.set_port(8000);
  sign.mutable_expires_at()->set_seconds(4'000'000'000);
  EXPECT_THAT(Call(&Stub::CreateSignedEndpoint, sign, &endpoint),
              HasReason("SIGNED_ENDPOINT_UNSUPPORTED"));

  v1::GetNetworkPolicyRequest policy;
  policy.set_sandbox_id(id);
  v1::NetworkPolicyStatus in_force;
  EXPECT_THAT(Call(&Stub::GetNetworkPolicy, policy, &in_force),
              AllOf(HasReason("UNSUPPORTED_FEATURE"), HasDetail("sandbox_id", id)));

  fake_.Script(
      "GET /v1/sandboxes/" + id + "/diagnostics/*",
      {.status = 200, .body = "TOKEN=CANARY\n", .headers = {{"content-type", "text/plain"}}});
  v1::GetDiagnosticsRequest ask;
  ask.set_sandbox_id(id);
  ask.set_kind(v1::GetDiagnosticsRequest::KIND_LOGS);
  v1::GetDiagnosticsResponse diagnostics;
  ASSERT_THAT(Call(&Stub::GetDiagnostics, ask, &diagnostics), IsOk());
  EXPECT_EQ(diagnostics.text(), "TOKEN=[redacted]\n");
  EXPECT_TRUE(diagnostics.redacted());

  v1::CreateSnapshotRequest keep;
  keep.set_sandbox_id(id);
  keep.set_name("gold");
  v1::Snapshot snapshot;
  ASSERT_THAT(Call(&Stub::CreateSnapshot, keep, &snapshot), IsOk());
  EXPECT_EQ(snapshot.state(), v1::Snapshot::STATE_READY);
  v1::ListSnapshotsResponse snapshots;
  ASSERT_THAT(Call(&Stub::ListSnapshots, v1::ListSnapshotsRequest(), &snapshots), IsOk());
  EXPECT_EQ(snapshots.snapshots_size(), 1);
  v1::DeleteSnapshotRequest drop;
  drop.set_snapshot_id(snapshot.snapshot_id());
  v1::DeleteSnapshotResponse dropped;
  ASSERT_THAT(Call(&Stub::DeleteSnapshot, drop, &dropped), IsOk());
  EXPECT_THAT(Call(&Stub::DeleteSnapshot, drop, &dropped), HasReason("SNAPSHOT_NOT_FOUND"));
}

TEST_F(SandboxServiceTest, ATenantSeesAndTouchesItsOwn) {
  v1::Sandbox blue;
  ASSERT_THAT(Create(Image(), &blue, "blue"), IsOk());
  v1::Sandbox red;
  ASSERT_THAT(Create(Image(), &red, "red"), IsOk());
  v1::ListSandboxesResponse listed;
  ASSERT_THAT(Call(&Stub::ListSandboxes, v1::ListSandboxesRequest(), &listed, "blue"), IsOk());
  ASSERT_EQ(listed.sandboxes_size(), 1);
  EXPECT_EQ(listed.sandboxes(0).sandbox_id(), blue.sandbox_id());

  v1::GetSandboxRequest get;
  get.set_sandbox_id(red.sandbox_id());
  v1::Sandbox sandbox;
  EXPECT_THAT(Call(&Stub::GetSandbox, get, &sandbox, "blue"), HasReason("NOT_YOUR_SANDBOX"));
  v1::DeleteSandboxRequest remove;
  remove.set_sandbox_id(red.sandbox_id());
  v1::DeleteSandboxResponse removed;
  EXPECT_THAT(Call(&Stub::DeleteSandbox, remove, &removed, "blue"), HasReason("NOT_YOUR_SANDBOX"));
  v1::UpdateMetadataRequest update;
  update.set_sandbox_id(red.sandbox_id());
  EXPECT_THAT(Call(&Stub::UpdateMetadata, update, &sandbox, "blue"), HasReason("NOT_YOUR_SANDBOX"));
  v1::GetEndpointRequest port;
  port.set_sandbox_id(red.sandbox_id());
  port.set_port(80);
  v1::Endpoint endpoint;
  EXPECT_THAT(Call(&Stub::GetEndpoint, port, &endpoint, "blue"), HasReason("NOT_YOUR_SANDBOX"));
  EXPECT_THAT(Call(&Stub::GetSandbox, get, &sandbox, "red"), IsOk());
}

TEST_F(SandboxServiceTest, ACallerWhoLeavesTakesItsSandboxAlong) {
  fake_.prototype.state = "Pending";
  grpc::ClientContext context;
  v1::CreateSandboxResponse response;
  grpc::Status status;
  std::thread call([&] { status = stub_->CreateSandbox(&context, Image(), &response); });
  while (fake_.Count("GET /v1/sandboxes/*") == 0) std::this_thread::yield();
  context.TryCancel();
  call.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  while (fake_.Count("DELETE /v1/sandboxes/*") == 0) std::this_thread::yield();
  loop_.RunAndWait([] {});
  EXPECT_EQ(fake_.size(), 0u);
}

TEST_F(SandboxServiceTest, ADeadlineIsOneToo) {
  fake_.prototype.state = "Pending";
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
  v1::CreateSandboxResponse response;
  const grpc::Status status = stub_->CreateSandbox(&context, Image(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  while (fake_.Count("DELETE /v1/sandboxes/*") == 0) std::this_thread::yield();
}

}  // namespace
}  // namespace bridge
