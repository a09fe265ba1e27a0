// SPDX-License-Identifier: Apache-2.0
//
// service/sandbox_service.h — SandboxService: validate, ask, pass on. WatchResourceUsage on the
// streams lane, the rest on the control lane.
#pragma once

#include "bridge/opensandbox/daemon_client.h"
#include "bridge/opensandbox/sandboxes.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"

namespace bridge {

class SandboxServiceImpl final : public sandbox::bridge::v1::SandboxService::CallbackService {
 public:
  // All of it outlives the gRPC server.
  struct Deps {
    CallHost& host;
    EventLoop& control;
    Sandboxes& sandboxes;           // on control
    DaemonClient& control_daemons;  // on control
    EventLoop& streams;
    DaemonClient& stream_daemons;  // on streams
  };
  explicit SandboxServiceImpl(Deps deps) : deps_(deps) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reply = grpc::ServerUnaryReactor;

  // clang-format off
  Reply* CreateSandbox(Context*, const sandbox::bridge::v1::CreateSandboxRequest*, sandbox::bridge::v1::CreateSandboxResponse*) override;
  Reply* GetSandbox(Context*, const sandbox::bridge::v1::GetSandboxRequest*, sandbox::bridge::v1::Sandbox*) override;
  Reply* ListSandboxes(Context*, const sandbox::bridge::v1::ListSandboxesRequest*, sandbox::bridge::v1::ListSandboxesResponse*) override;
  Reply* DeleteSandbox(Context*, const sandbox::bridge::v1::DeleteSandboxRequest*, sandbox::bridge::v1::DeleteSandboxResponse*) override;
  Reply* ProbeSandbox(Context*, const sandbox::bridge::v1::ProbeSandboxRequest*, sandbox::bridge::v1::ProbeSandboxResponse*) override;
  Reply* SetExpiration(Context*, const sandbox::bridge::v1::SetExpirationRequest*, sandbox::bridge::v1::SetExpirationResponse*) override;
  Reply* PauseSandbox(Context*, const sandbox::bridge::v1::PauseSandboxRequest*, sandbox::bridge::v1::PauseSandboxResponse*) override;
  Reply* ResumeSandbox(Context*, const sandbox::bridge::v1::ResumeSandboxRequest*, sandbox::bridge::v1::ResumeSandboxResponse*) override;
  Reply* UpdateMetadata(Context*, const sandbox::bridge::v1::UpdateMetadataRequest*, sandbox::bridge::v1::Sandbox*) override;
  Reply* GetEndpoint(Context*, const sandbox::bridge::v1::GetEndpointRequest*, sandbox::bridge::v1::Endpoint*) override;
  Reply* CreateSignedEndpoint(Context*, const sandbox::bridge::v1::CreateSignedEndpointRequest*, sandbox::bridge::v1::Endpoint*) override;
  Reply* GetNetworkPolicy(Context*, const sandbox::bridge::v1::GetNetworkPolicyRequest*, sandbox::bridge::v1::NetworkPolicyStatus*) override;
  Reply* PatchNetworkPolicy(Context*, const sandbox::bridge::v1::PatchNetworkPolicyRequest*, sandbox::bridge::v1::NetworkPolicyStatus*) override;
  Reply* GetDiagnostics(Context*, const sandbox::bridge::v1::GetDiagnosticsRequest*, sandbox::bridge::v1::GetDiagnosticsResponse*) override;
  Reply* GetResourceUsage(Context*, const sandbox::bridge::v1::GetResourceUsageRequest*, sandbox::bridge::v1::ResourceUsage*) override;
  grpc::ServerWriteReactor<sandbox::bridge::v1::ResourceUsage>* WatchResourceUsage(Context*, const sandbox::bridge::v1::WatchResourceUsageRequest*) override;
  Reply* CreateSnapshot(Context*, const sandbox::bridge::v1::CreateSnapshotRequest*, sandbox::bridge::v1::Snapshot*) override;
  Reply* ListSnapshots(Context*, const sandbox::bridge::v1::ListSnapshotsRequest*, sandbox::bridge::v1::ListSnapshotsResponse*) override;
  Reply* DeleteSnapshot(Context*, const sandbox::bridge::v1::DeleteSnapshotRequest*, sandbox::bridge::v1::DeleteSnapshotResponse*) override;
  // clang-format on

  const Deps deps_;
};

}  // namespace bridge
