// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/sandbox_service.h"

#include "bridge/service/sandbox_calls.h"
#include "bridge/service/sandbox_validate.h"

namespace bridge {
namespace {

#define SB_METHOD(kind, name) kind("sandbox.bridge.v1.SandboxService/" name)
constexpr Method kCreate = SB_METHOD(UnaryMethod, "CreateSandbox");
constexpr Method kGet = SB_METHOD(UnaryMethod, "GetSandbox");
constexpr Method kList = SB_METHOD(UnaryMethod, "ListSandboxes");
constexpr Method kDelete = SB_METHOD(UnaryMethod, "DeleteSandbox");
constexpr Method kProbe = SB_METHOD(UnaryMethod, "ProbeSandbox");
constexpr Method kSetExpiration = SB_METHOD(UnaryMethod, "SetExpiration");
constexpr Method kPause = SB_METHOD(UnaryMethod, "PauseSandbox");
constexpr Method kResume = SB_METHOD(UnaryMethod, "ResumeSandbox");
constexpr Method kUpdateMetadata = SB_METHOD(UnaryMethod, "UpdateMetadata");
constexpr Method kGetEndpoint = SB_METHOD(UnaryMethod, "GetEndpoint");
constexpr Method kSignEndpoint = SB_METHOD(UnaryMethod, "CreateSignedEndpoint");
constexpr Method kGetPolicy = SB_METHOD(UnaryMethod, "GetNetworkPolicy");
constexpr Method kPatchPolicy = SB_METHOD(UnaryMethod, "PatchNetworkPolicy");
constexpr Method kDiagnostics = SB_METHOD(UnaryMethod, "GetDiagnostics");
constexpr Method kGetUsage = SB_METHOD(UnaryMethod, "GetResourceUsage");
constexpr Method kWatchUsage = SB_METHOD(StreamingMethod, "WatchResourceUsage");
constexpr Method kCreateSnapshot = SB_METHOD(UnaryMethod, "CreateSnapshot");
constexpr Method kListSnapshots = SB_METHOD(UnaryMethod, "ListSnapshots");
constexpr Method kDeleteSnapshot = SB_METHOD(UnaryMethod, "DeleteSnapshot");
#undef SB_METHOD

// What a call needs on top of a wait that its request asks for.
constexpr absl::Duration kMargin = absl::Seconds(30);

// The default deadline of a call that waits: as long as it may wait, and the margin. A wait that is
// out of range is refused by the handler at once.
template <class Request>
Method Waiting(const Method& method, const Request* request) {
  const absl::StatusOr<absl::Duration> wait = WaitOf(*request);
  return wait.ok() ? method.WithDefaultDeadline(*wait + kMargin) : method;
}

}  // namespace

// A unary method: the call's coroutine is `handler` of sandbox_calls.h.
#define SB_UNARY(name, Request, Response, method, parts, handler)                                  \
  grpc::ServerUnaryReactor* SandboxServiceImpl::name(Context* context, const v1::Request* request, \
                                                     v1::Response* response) {                     \
    return Start<Unary>(deps_.host, deps_.control, context, (method).Charging(*request),           \
                        [this, request, response](auto& call) {                                    \
                          return handler(deps_.parts, call, *request, *response);                  \
                        });                                                                        \
  }

SB_UNARY(CreateSandbox, CreateSandboxRequest, CreateSandboxResponse, Waiting(kCreate, request),
         sandboxes, HandleCreate)
SB_UNARY(GetSandbox, GetSandboxRequest, Sandbox, kGet, sandboxes, HandleGet)
SB_UNARY(ListSandboxes, ListSandboxesRequest, ListSandboxesResponse, kList, sandboxes, HandleList)
SB_UNARY(DeleteSandbox, DeleteSandboxRequest, DeleteSandboxResponse, Waiting(kDelete, request),
         sandboxes, HandleDelete)
SB_UNARY(ProbeSandbox, ProbeSandboxRequest, ProbeSandboxResponse, kProbe, sandboxes, HandleProbe)
SB_UNARY(SetExpiration, SetExpirationRequest, SetExpirationResponse, kSetExpiration, sandboxes,
         HandleSetExpiration)
SB_UNARY(PauseSandbox, PauseSandboxRequest, PauseSandboxResponse, Waiting(kPause, request),
         sandboxes, HandlePause)
SB_UNARY(ResumeSandbox, ResumeSandboxRequest, ResumeSandboxResponse, Waiting(kResume, request),
         sandboxes, HandleResume)
SB_UNARY(UpdateMetadata, UpdateMetadataRequest, Sandbox, kUpdateMetadata, sandboxes,
         HandleUpdateMetadata)
SB_UNARY(GetEndpoint, GetEndpointRequest, Endpoint, kGetEndpoint, sandboxes, HandleGetEndpoint)
SB_UNARY(CreateSignedEndpoint, CreateSignedEndpointRequest, Endpoint, kSignEndpoint, sandboxes,
         HandleSignEndpoint)
SB_UNARY(GetNetworkPolicy, GetNetworkPolicyRequest, NetworkPolicyStatus, kGetPolicy, sandboxes,
         HandleGetPolicy)
SB_UNARY(PatchNetworkPolicy, PatchNetworkPolicyRequest, NetworkPolicyStatus, kPatchPolicy,
         sandboxes, HandlePatchPolicy)
SB_UNARY(GetDiagnostics, GetDiagnosticsRequest, GetDiagnosticsResponse, kDiagnostics, sandboxes,
         HandleDiagnostics)
SB_UNARY(GetResourceUsage, GetResourceUsageRequest, ResourceUsage, kGetUsage, control_daemons,
         HandleGetUsage)
SB_UNARY(CreateSnapshot, CreateSnapshotRequest, Snapshot, Waiting(kCreateSnapshot, request),
         sandboxes, HandleCreateSnapshot)
SB_UNARY(ListSnapshots, ListSnapshotsRequest, ListSnapshotsResponse, kListSnapshots, sandboxes,
         HandleListSnapshots)
SB_UNARY(DeleteSnapshot, DeleteSnapshotRequest, DeleteSnapshotResponse, kDeleteSnapshot, sandboxes,
         HandleDeleteSnapshot)
#undef SB_UNARY

grpc::ServerWriteReactor<v1::ResourceUsage>* SandboxServiceImpl::WatchResourceUsage(
    Context* context, const v1::WatchResourceUsageRequest* request) {
  return Start<Writer<v1::ResourceUsage>>(
      deps_.host, deps_.streams, context, kWatchUsage, [this, request](auto& call) {
        return HandleWatchUsage(deps_.stream_daemons, call, *request);
      });
}

}  // namespace bridge
