// SPDX-License-Identifier: Apache-2.0
//
// service/sandbox_calls.h — the coroutines of SandboxService, one a method: validate → ask →
// convert. Nothing is sent upstream for a request that is not valid. Each runs on the loop of the
// parts that it is given; request and response live until the call has ended.
#pragma once

#include "absl/status/status.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/daemon_client.h"
#include "bridge/opensandbox/sandboxes.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge {

namespace v1 = sandbox::bridge::v1;

Task<absl::Status> HandleCreate(Sandboxes& sandboxes, Unary& call,
                                const v1::CreateSandboxRequest& request,
                                v1::CreateSandboxResponse& response);
Task<absl::Status> HandleGet(Sandboxes& sandboxes, Unary& call,
                             const v1::GetSandboxRequest& request, v1::Sandbox& response);
Task<absl::Status> HandleList(Sandboxes& sandboxes, Unary& call,
                              const v1::ListSandboxesRequest& request,
                              v1::ListSandboxesResponse& response);
Task<absl::Status> HandleDelete(Sandboxes& sandboxes, Unary& call,
                                const v1::DeleteSandboxRequest& request,
                                v1::DeleteSandboxResponse& response);
Task<absl::Status> HandleProbe(Sandboxes& sandboxes, Unary& call,
                               const v1::ProbeSandboxRequest& request,
                               v1::ProbeSandboxResponse& response);
Task<absl::Status> HandleSetExpiration(Sandboxes& sandboxes, Unary& call,
                                       const v1::SetExpirationRequest& request,
                                       v1::SetExpirationResponse& response);
Task<absl::Status> HandlePause(Sandboxes& sandboxes, Unary& call,
                               const v1::PauseSandboxRequest& request,
                               v1::PauseSandboxResponse& response);
Task<absl::Status> HandleResume(Sandboxes& sandboxes, Unary& call,
                                const v1::ResumeSandboxRequest& request,
                                v1::ResumeSandboxResponse& response);
Task<absl::Status> HandleUpdateMetadata(Sandboxes& sandboxes, Unary& call,
                                        const v1::UpdateMetadataRequest& request,
                                        v1::Sandbox& response);

// sandbox_part_calls.cc
Task<absl::Status> HandleGetEndpoint(Sandboxes& sandboxes, Unary& call,
                                     const v1::GetEndpointRequest& request, v1::Endpoint& response);
Task<absl::Status> HandleSignEndpoint(Sandboxes& sandboxes, Unary& call,
                                      const v1::CreateSignedEndpointRequest& request,
                                      v1::Endpoint& response);
Task<absl::Status> HandleGetPolicy(Sandboxes& sandboxes, Unary& call,
                                   const v1::GetNetworkPolicyRequest& request,
                                   v1::NetworkPolicyStatus& response);
Task<absl::Status> HandlePatchPolicy(Sandboxes& sandboxes, Unary& call,
                                     const v1::PatchNetworkPolicyRequest& request,
                                     v1::NetworkPolicyStatus& response);
Task<absl::Status> HandleDiagnostics(Sandboxes& sandboxes, Unary& call,
                                     const v1::GetDiagnosticsRequest& request,
                                     v1::GetDiagnosticsResponse& response);
Task<absl::Status> HandleGetUsage(DaemonClient& daemons, Unary& call,
                                  const v1::GetResourceUsageRequest& request,
                                  v1::ResourceUsage& response);
Task<absl::Status> HandleWatchUsage(DaemonClient& daemons, Writer<v1::ResourceUsage>& call,
                                    const v1::WatchResourceUsageRequest& request);
Task<absl::Status> HandleCreateSnapshot(Sandboxes& sandboxes, Unary& call,
                                        const v1::CreateSnapshotRequest& request,
                                        v1::Snapshot& response);
Task<absl::Status> HandleListSnapshots(Sandboxes& sandboxes, Unary& call,
                                       const v1::ListSnapshotsRequest& request,
                                       v1::ListSnapshotsResponse& response);
Task<absl::Status> HandleDeleteSnapshot(Sandboxes& sandboxes, Unary& call,
                                        const v1::DeleteSnapshotRequest& request,
                                        v1::DeleteSnapshotResponse& response);

}  // namespace bridge
