// SPDX-License-Identifier: Apache-2.0
//
// Hostile requests to every method of SandboxService: refused with the field's path, and nothing is
// sent upstream.
#include <functional>

#include "tests/service/sandbox_service_fixture.h"

namespace bridge {
namespace {

using ::testing::SizeIs;

class HostileRequestTest : public SandboxServiceFixture {
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
