// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/bridge_service.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "bridge/base/status_macros.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr Method kGetServerInfo = UnaryMethod("sandbox.bridge.v1.BridgeService/GetServerInfo");
constexpr Method kGetCapabilities = UnaryMethod("sandbox.bridge.v1.BridgeService/GetCapabilities");

// Nobody should wait long for a version number.
constexpr absl::Duration kVersionTime = absl::Seconds(2);

}  // namespace

grpc::ServerUnaryReactor* BridgeServiceImpl::GetServerInfo(grpc::CallbackServerContext* context,
                                                           const v1::GetServerInfoRequest*,
                                                           v1::ServerInfo* response) {
  return Start<Unary>(deps_.host, deps_.control, context, kGetServerInfo,
                      [this, response](Unary& call) { return Info(call, *response); });
}

grpc::ServerUnaryReactor* BridgeServiceImpl::GetCapabilities(
    grpc::CallbackServerContext* context, const v1::GetCapabilitiesRequest* request,
    v1::GetCapabilitiesResponse* response) {
  return Start<Unary>(
      deps_.host, deps_.control, context, kGetCapabilities,
      [this, request, response](Unary& call) { return Capabilities(call, *request, *response); });
}

Task<absl::Status> BridgeServiceImpl::Info(Unary& call, v1::ServerInfo& response) {
  response = deps_.info;
  call.set_waiting_for("the upstream's version");
  CallContext context = call.context();
  context.deadline = std::min(context.deadline, call.loop().Now() + kVersionTime);
  response.mutable_upstream()->set_version(
      co_await deps_.facts.UpstreamVersion(std::move(context)));
  co_return absl::OkStatus();
}

Task<absl::Status> BridgeServiceImpl::Capabilities(Unary& call,
                                                   const v1::GetCapabilitiesRequest& request,
                                                   v1::GetCapabilitiesResponse& response) {
  call.set_waiting_for("what the sandbox's daemon can do");
  if (!request.sandbox_id().empty()) {
    CO_RETURN_IF_ERROR(CheckSandboxId(request.sandbox_id()));
  }
  CO_ASSIGN_OR_RETURN(BridgeFacts::Capabilities found,
                      co_await deps_.facts.GetCapabilities(call.context(), request.sandbox_id()));
  for (auto& row : found.rows) *response.add_capabilities() = std::move(row);
  response.set_daemon(std::move(found.daemon));
  co_return absl::OkStatus();
}

}  // namespace bridge
