// SPDX-License-Identifier: Apache-2.0
//
// What SandboxService tells of one sandbox's parts: ports, policy, diagnostics, usage, snapshots.
#include <string>
#include <utility>
#include <vector>

#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/resource_usage.h"
#include "bridge/opensandbox/sandbox_diagnostics.h"
#include "bridge/opensandbox/sandbox_policy.h"
#include "bridge/opensandbox/sandbox_ports.h"
#include "bridge/opensandbox/snapshots.h"
#include "bridge/service/policy_validate.h"
#include "bridge/service/sandbox_calls.h"
#include "bridge/service/sandbox_convert.h"
#include "bridge/service/sandbox_validate.h"
#include "bridge/service/target.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

constexpr int kDefaultTail = 100;
constexpr int kMaxTail = 10'000;
constexpr size_t kMaxSnapshotName = 200;

}  // namespace

Task<absl::Status> HandleGetEndpoint(Sandboxes& sandboxes, Unary& call,
                                     const v1::GetEndpointRequest& request,
                                     v1::Endpoint& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(CheckPort("port", request.port()));
  CO_RETURN_IF_ERROR(
      CheckEnum("route", request.route(), v1::EndpointRoute_IsValid(request.route())));
  const bool through_server =
      request.route() == v1::ENDPOINT_ROUTE_SERVER_PROXY ||
      (request.route() == v1::ENDPOINT_ROUTE_UNSPECIFIED && sandboxes.finder.through_server());
  call.set_waiting_for("the endpoint");
  const absl::StatusOr<PortUrl> port =
      co_await GetPortUrl(sandboxes.client, call.context(), target.sandbox_id, target.incarnation,
                          request.port(), through_server);
  if (!port.ok()) co_return About(request, port.status());
  PortUrlToProto(*port, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleSignEndpoint(Sandboxes& sandboxes, Unary& call,
                                      const v1::CreateSignedEndpointRequest& request,
                                      v1::Endpoint& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(CheckPort("port", request.port()));
  if (!request.has_expires_at()) co_return InvalidField("expires_at", "must be given");
  CO_ASSIGN_OR_RETURN(const absl::Time expires_at,
                      CheckTimestamp("expires_at", request.expires_at()));
  call.set_waiting_for("the signed endpoint");
  const absl::StatusOr<PortUrl> port =
      co_await SignPortUrl(sandboxes.client, call.context(), target.sandbox_id, target.incarnation,
                           request.port(), expires_at);
  if (!port.ok()) co_return About(request, port.status());
  PortUrlToProto(*port, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleGetPolicy(Sandboxes& sandboxes, Unary& call,
                                   const v1::GetNetworkPolicyRequest& request,
                                   v1::NetworkPolicyStatus& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  call.set_waiting_for("the network policy");
  const absl::StatusOr<NetworkPolicyStatus> policy =
      co_await GetPolicy(sandboxes.client, call.context(), target.sandbox_id, target.incarnation);
  if (!policy.ok()) co_return About(request, policy.status());
  PolicyToProto(*policy, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandlePatchPolicy(Sandboxes& sandboxes, Unary& call,
                                     const v1::PatchNetworkPolicyRequest& request,
                                     v1::NetworkPolicyStatus& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(CheckPatchNetworkPolicy(request));
  std::vector<NetworkRule> add;
  for (const auto& rule : request.add()) add.push_back(RuleFromProto(rule));
  std::vector<std::string> removed(request.remove_targets().begin(),
                                   request.remove_targets().end());
  call.set_waiting_for("the network policy");
  const absl::StatusOr<NetworkPolicyStatus> policy =
      co_await PatchPolicy(sandboxes.client, call.context(), target.sandbox_id, target.incarnation,
                           std::move(add), std::move(removed));
  if (!policy.ok()) co_return About(request, policy.status());
  PolicyToProto(*policy, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleDiagnostics(Sandboxes& sandboxes, Unary& call,
                                     const v1::GetDiagnosticsRequest& request,
                                     v1::GetDiagnosticsResponse& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(
      CheckEnum("kind", request.kind(), v1::GetDiagnosticsRequest::Kind_IsValid(request.kind())));
  if (request.tail() < 0 || request.tail() > kMaxTail) {
    co_return InvalidField("tail", "must be between 1 and 10000");
  }
  call.set_waiting_for("the diagnostics");
  absl::StatusOr<SandboxDiagnostics> diagnostics =
      co_await GetDiagnostics(sandboxes.client, call.context(), target.sandbox_id,
                              target.incarnation, DiagnosticsKindFromProto(request.kind()),
                              request.tail() == 0 ? kDefaultTail : request.tail());
  if (!diagnostics.ok()) co_return About(request, diagnostics.status());
  response.set_text(std::move(diagnostics->text));
  response.set_truncated(diagnostics->truncated);
  response.set_redacted(diagnostics->redacted);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleGetUsage(DaemonClient& daemons, Unary& call,
                                  const v1::GetResourceUsageRequest& request,
                                  v1::ResourceUsage& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  call.set_waiting_for("a measurement");
  const absl::StatusOr<ResourceSample> sample =
      co_await ReadResourceUsage(daemons, call.context(), target.sandbox_id, target.incarnation);
  if (!sample.ok()) co_return About(request, sample.status());
  SampleToProto(*sample, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleWatchUsage(DaemonClient& daemons, Writer<v1::ResourceUsage>& call,
                                    const v1::WatchResourceUsageRequest& request) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  call.set_waiting_for("a measurement");
  ResourceWatch watch(daemons, call.context(), target.sandbox_id, target.incarnation);
  const absl::Status opened = co_await watch.Open();
  if (!opened.ok()) co_return About(request, opened);
  v1::ResourceUsage message;
  while (true) {
    const absl::StatusOr<ResourceSample> sample = co_await watch.Next();
    if (!sample.ok()) co_return About(request, sample.status());
    message.Clear();
    SampleToProto(*sample, &message);
    const bool alive = co_await call.Write(message);
    if (!alive) co_return About(request, call.Interrupted());
  }
}

Task<absl::Status> HandleCreateSnapshot(Sandboxes& sandboxes, Unary& call,
                                        const v1::CreateSnapshotRequest& request,
                                        v1::Snapshot& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(CheckPlainText("name", request.name(), kMaxSnapshotName));
  CO_ASSIGN_OR_RETURN(const absl::Duration wait, WaitOf(request));
  call.set_waiting_for("the snapshot");
  const absl::StatusOr<SnapshotRecord> record =
      co_await CreateSnapshot(sandboxes.client, call.context(), target.sandbox_id,
                              target.incarnation, request.name(), wait);
  if (!record.ok()) co_return About(request, record.status());
  SnapshotToProto(*record, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleListSnapshots(Sandboxes& sandboxes, Unary& call,
                                       const v1::ListSnapshotsRequest& request,
                                       v1::ListSnapshotsResponse& response) {
  if (!request.sandbox_id().empty()) CO_RETURN_IF_ERROR(CheckSandboxId(request.sandbox_id()));
  CO_ASSIGN_OR_RETURN(const int page_size, CheckPageSize("page_size", request.page_size()));
  call.set_waiting_for("the list");
  SnapshotListRequest wanted{.sandbox_id = request.sandbox_id(),
                             .page_size = page_size,
                             .page_token = request.page_token()};
  CO_ASSIGN_OR_RETURN(const SnapshotList list,
                      co_await ListSnapshots(sandboxes.client, call.context(), std::move(wanted)));
  for (const SnapshotRecord& record : list.snapshots) {
    SnapshotToProto(record, response.add_snapshots());
  }
  response.set_next_page_token(list.next_page_token);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleDeleteSnapshot(Sandboxes& sandboxes, Unary& call,
                                        const v1::DeleteSnapshotRequest& request,
                                        v1::DeleteSnapshotResponse&) {
  CO_RETURN_IF_ERROR(CheckId("snapshot_id", request.snapshot_id()));
  call.set_waiting_for("the snapshot to be deleted");
  co_return co_await DeleteSnapshot(sandboxes.client, call.context(), request.snapshot_id());
}

}  // namespace bridge
