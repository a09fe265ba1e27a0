// SPDX-License-Identifier: Apache-2.0
//
// SandboxService over gRPC, on an OpenSandbox in memory.
#include "bridge/service/sandbox_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bridge/opensandbox/labels.h"
#include "bridge/service/status.h"
#include "tests/fakes/fake_opensandbox.h"
#include "tests/fakes/run_task.h"
#include "tests/fakes/status_matchers.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Stub = v1::SandboxService::Stub;

// Knows tenants by their token: "Bearer blue" is blue.
class ByToken final : public Authenticator {
 public:
  absl::StatusOr<Caller> Authenticate(std::string_view authorization) override {
    if (authorization.empty()) return Caller{};
    return Caller{.tenant = std::string(authorization.substr(7))};
  }
};

class SandboxServiceTest : public ::testing::Test {
 protected:
  SandboxServiceTest() {
    directories_.Add(loop_, directory_);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::SandboxService::NewStub(server_->InProcessChannel({}));
  }
  ~SandboxServiceTest() override {
    server_->Shutdown();
    server_->Wait();
    while (host_.live() > 0) std::this_thread::yield();
    RunTask(loop_, [this]() -> Task<void> { co_await tasks_.Drain(loop_, absl::Seconds(10)); });
  }

  template <class Request, class Response>
  absl::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response, const std::string& tenant = "") {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    if (!tenant.empty()) context.AddMetadata("authorization", "Bearer " + tenant);
    return FromGrpcStatus((stub_.get()->*method)(&context, request, response));
  }
  absl::Status Create(const v1::CreateSandboxRequest& request, v1::Sandbox* sandbox,
                      const std::string& tenant = "") {
    v1::CreateSandboxResponse response;
    const absl::Status status = Call(&Stub::CreateSandbox, request, &response, tenant);
    *sandbox = response.sandbox();
    return status;
  }
  static v1::CreateSandboxRequest Image() {
    v1::CreateSandboxRequest request;
    request.mutable_spec()->set_image("img");
    return request;
  }
  static LifecycleClientOptions ClientOptions() {
    LifecycleClientOptions options;
    options.server = *ParseBaseUrl(FakeOpenSandbox::kUrl);
    return options;
  }

  ByToken tokens_;
  CallHost host_{{.api_key = "CANARYKEY", .authenticator = &tokens_}};
  EventLoop loop_;
  HttpClient http_{loop_};
  FakeOpenSandbox fake_{loop_};
  TaskScope tasks_;
  DirectoryGroup directories_;
  LifecycleClient client_{loop_, fake_, ClientOptions()};
  DaemonFinder finder_{client_, fake_, {}};
  CachingDirectory directory_{client_, finder_, tasks_, {}};
  DaemonClient daemons_{http_, directory_};
  Sandboxes sandboxes_{client_, finder_, directories_, tasks_};
  SandboxServiceImpl service_{{.host = host_,
                               .control = loop_,
                               .sandboxes = sandboxes_,
                               .control_daemons = daemons_,
                               .streams = loop_,
                               .stream_daemons = daemons_}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Stub> stub_;
};

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

// --- Hostile requests: refused with the field's path, and nothing sent upstream.

class HostileRequestTest : public SandboxServiceTest {
 protected:
  template <class Request, class Response>
  void Refuses(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
               const std::string& field, const std::function<void(Request&)>& change) {
    Request request;
    if constexpr (requires { request.set_sandbox_id("x"); }) request.set_sandbox_id("sb-1");
    change(request);
    Response response;
    EXPECT_THAT(Call(method, request, &response), RejectsField(field)) << request.DebugString();
    EXPECT_THAT(fake_.requests(), SizeIs(0));
  }
  // What every method about one sandbox refuses.
  template <class Request, class Response>
  void RefusesTargets(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                   Response*)) {
    for (const std::string& id :
         {std::string(""), std::string("../sandboxes"), std::string("a/b"), std::string("a%2Fb"),
          std::string("a?x=1"), std::string("a#b"), std::string("A B"), std::string("a\n"),
          std::string(10'240, 'a'), std::string("\xc3\xbc"), std::string("a\0b", 3)}) {
      Refuses<Request, Response>(method, "sandbox_id", [&](Request& r) { r.set_sandbox_id(id); });
    }
    for (const std::string& text : {std::string("a\nb"), std::string(129, 'x')}) {
      Refuses<Request, Response>(method, "expected_incarnation",
                                 [&](Request& r) { r.set_expected_incarnation(text); });
    }
  }
};

TEST_F(HostileRequestTest, IdsOfEveryMethod) {
  RefusesTargets(&Stub::GetSandbox);
  RefusesTargets(&Stub::DeleteSandbox);
  RefusesTargets(&Stub::ProbeSandbox);
  RefusesTargets(&Stub::SetExpiration);
  RefusesTargets(&Stub::PauseSandbox);
  RefusesTargets(&Stub::ResumeSandbox);
  RefusesTargets(&Stub::UpdateMetadata);
  RefusesTargets(&Stub::GetEndpoint);
  RefusesTargets(&Stub::CreateSignedEndpoint);
  RefusesTargets(&Stub::GetNetworkPolicy);
  RefusesTargets(&Stub::PatchNetworkPolicy);
  RefusesTargets(&Stub::GetDiagnostics);
  RefusesTargets(&Stub::GetResourceUsage);
  RefusesTargets(&Stub::CreateSnapshot);
}

TEST_F(HostileRequestTest, IdsOfTheStream) {
  for (const char* id : {"", "../x", "a b"}) {
    grpc::ClientContext context;
    v1::WatchResourceUsageRequest request;
    request.set_sandbox_id(id);
    auto reader = stub_->WatchResourceUsage(&context, request);
    v1::ResourceUsage usage;
    EXPECT_FALSE(reader->Read(&usage));
    EXPECT_THAT(FromGrpcStatus(reader->Finish()), RejectsField("sandbox_id"));
  }
  EXPECT_THAT(fake_.requests(), SizeIs(0));
}

TEST_F(HostileRequestTest, Creates) {
  using Request = v1::CreateSandboxRequest;
  using Response = v1::CreateSandboxResponse;
  const auto refuses = [this](const char* field, std::function<void(Request&)> change) {
    Refuses<Request, Response>(&Stub::CreateSandbox, field, [&](Request& request) {
      request = Image();
      change(request);
    });
  };
  refuses("spec", [](auto& r) { r.clear_spec(); });
  refuses("spec.source", [](auto& r) { r.mutable_spec()->clear_source(); });
  refuses("spec.env[0].name", [](auto& r) { r.mutable_spec()->add_env()->set_name("A B"); });
  refuses("spec.metadata[\"opensandbox.io/x\"]",
          [](auto& r) { (*r.mutable_spec()->mutable_metadata())["opensandbox.io/x"] = "1"; });
  refuses("spec.ttl", [](auto& r) { r.mutable_spec()->mutable_ttl()->set_seconds(-1); });
  refuses("spec.ttl", [](auto& r) { r.mutable_spec()->mutable_ttl()->set_seconds(1LL << 53); });
  refuses("spec.resource_limits[\"memory\"]",
          [](auto& r) { (*r.mutable_spec()->mutable_resource_limits())["memory"] = "1.5Gi"; });
  refuses("spec.volumes[0].name", [](auto& r) { r.mutable_spec()->add_volumes(); });
  refuses("spec.network_policy.rules[0].action",
          [](auto& r) { r.mutable_spec()->mutable_network_policy()->add_rules(); });
  refuses("request_id", [](auto& r) { r.set_request_id("a/b"); });
  refuses("ready_timeout", [](auto& r) { r.mutable_ready_timeout()->set_seconds(0); });
}

TEST_F(HostileRequestTest, TheOtherMethods) {
  Refuses<v1::ListSandboxesRequest, v1::ListSandboxesResponse>(
      &Stub::ListSandboxes, "page_size", [](auto& r) { r.set_page_size(-1); });
  Refuses<v1::ListSandboxesRequest, v1::ListSandboxesResponse>(
      &Stub::ListSandboxes, "page_token", [](auto& r) { r.set_page_token("garbage"); });
  Refuses<v1::ListSandboxesRequest, v1::ListSandboxesResponse>(
      &Stub::ListSandboxes, "states[0]",
      [](auto& r) { r.add_states(static_cast<v1::SandboxState>(1000)); });
  Refuses<v1::DeleteSandboxRequest, v1::DeleteSandboxResponse>(
      &Stub::DeleteSandbox, "wait_for_proof",
      [](auto& r) { r.mutable_wait_for_proof()->set_seconds(-1); });
  Refuses<v1::SetExpirationRequest, v1::SetExpirationResponse>(&Stub::SetExpiration, "expiration",
                                                               [](auto&) {});
  Refuses<v1::SetExpirationRequest, v1::SetExpirationResponse>(&Stub::SetExpiration, "ttl",
                                                               [](auto& r) { r.mutable_ttl(); });
  Refuses<v1::PauseSandboxRequest, v1::PauseSandboxResponse>(
      &Stub::PauseSandbox, "wait", [](auto& r) { r.mutable_wait()->set_nanos(-1); });
  Refuses<v1::ResumeSandboxRequest, v1::ResumeSandboxResponse>(
      &Stub::ResumeSandbox, "wait", [](auto& r) { r.mutable_wait()->set_seconds(1LL << 40); });
  Refuses<v1::UpdateMetadataRequest, v1::Sandbox>(
      &Stub::UpdateMetadata, "set[\"sandbox-bridge/tenant\"]",
      [](auto& r) { (*r.mutable_set())["sandbox-bridge/tenant"] = "red"; });
  for (const int port : {0, -1, 65536}) {
    Refuses<v1::GetEndpointRequest, v1::Endpoint>(&Stub::GetEndpoint, "port",
                                                  [&](auto& r) { r.set_port(port); });
    Refuses<v1::CreateSignedEndpointRequest, v1::Endpoint>(&Stub::CreateSignedEndpoint, "port",
                                                           [&](auto& r) { r.set_port(port); });
  }
  Refuses<v1::GetEndpointRequest, v1::Endpoint>(&Stub::GetEndpoint, "route", [](auto& r) {
    r.set_port(80);
    r.set_route(static_cast<v1::EndpointRoute>(9));
  });
  Refuses<v1::CreateSignedEndpointRequest, v1::Endpoint>(&Stub::CreateSignedEndpoint, "expires_at",
                                                         [](auto& r) { r.set_port(80); });
  Refuses<v1::CreateSignedEndpointRequest, v1::Endpoint>(&Stub::CreateSignedEndpoint, "expires_at",
                                                         [](auto& r) {
                                                           r.set_port(80);
                                                           r.mutable_expires_at()->set_seconds(1);
                                                         });
  Refuses<v1::PatchNetworkPolicyRequest, v1::NetworkPolicyStatus>(&Stub::PatchNetworkPolicy, "add",
                                                                  [](auto&) {});
  Refuses<v1::GetDiagnosticsRequest, v1::GetDiagnosticsResponse>(
      &Stub::GetDiagnostics, "tail", [](auto& r) { r.set_tail(10'001); });
  Refuses<v1::GetDiagnosticsRequest, v1::GetDiagnosticsResponse>(
      &Stub::GetDiagnostics, "kind",
      [](auto& r) { r.set_kind(static_cast<v1::GetDiagnosticsRequest::Kind>(-3)); });
  Refuses<v1::CreateSnapshotRequest, v1::Snapshot>(&Stub::CreateSnapshot, "name",
                                                   [](auto& r) { r.set_name("a\nb"); });
  Refuses<v1::ListSnapshotsRequest, v1::ListSnapshotsResponse>(
      &Stub::ListSnapshots, "sandbox_id", [](auto& r) { r.set_sandbox_id("../x"); });
  Refuses<v1::ListSnapshotsRequest, v1::ListSnapshotsResponse>(
      &Stub::ListSnapshots, "page_size", [](auto& r) { r.set_page_size(1000); });
  for (const char* id : {"", "../sandboxes", "a/b"}) {
    Refuses<v1::DeleteSnapshotRequest, v1::DeleteSnapshotResponse>(
        &Stub::DeleteSnapshot, "snapshot_id", [&](auto& r) { r.set_snapshot_id(id); });
  }
}

}  // namespace
}  // namespace bridge
