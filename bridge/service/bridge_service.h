// SPDX-License-Identifier: Apache-2.0
//
// service/bridge_service.h — BridgeService: what this bridge is and what can be done through it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/service/call.h"
#include "bridge/service/call_host.h"
#include "sandbox/bridge/v1/bridge.grpc.pb.h"

namespace bridge {

// What GetServerInfo and GetCapabilities answer from. Used on the control lane only.
class BridgeFacts {
 public:
  struct Capabilities {
    std::vector<sandbox::bridge::v1::Capability> rows;
    std::string daemon = {};  // empty without a sandbox
  };
  virtual ~BridgeFacts() = default;

  // As the upstream tells it; empty when it does not. Never an error: an upstream that is down has
  // no version.
  virtual Task<std::string> UpstreamVersion(CallContext context) = 0;
  // `sandbox_id` empty: of the bridge and its upstream alone.
  virtual Task<absl::StatusOr<Capabilities>> GetCapabilities(CallContext context,
                                                             std::string sandbox_id) = 0;
};

class BridgeServiceImpl final : public sandbox::bridge::v1::BridgeService::CallbackService {
 public:
  // All of it outlives the gRPC server.
  struct Deps {
    CallHost& host;
    EventLoop& control;
    BridgeFacts& facts;
    // All but the upstream's version.
    sandbox::bridge::v1::ServerInfo info;
  };
  explicit BridgeServiceImpl(Deps deps) : deps_(std::move(deps)) {}

 private:
  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const sandbox::bridge::v1::GetServerInfoRequest* request,
                                          sandbox::bridge::v1::ServerInfo* response) override;
  grpc::ServerUnaryReactor* GetCapabilities(
      grpc::CallbackServerContext* context,
      const sandbox::bridge::v1::GetCapabilitiesRequest* request,
      sandbox::bridge::v1::GetCapabilitiesResponse* response) override;

  Task<absl::Status> Info(Unary& call, sandbox::bridge::v1::ServerInfo& response);
  Task<absl::Status> Capabilities(Unary& call,
                                  const sandbox::bridge::v1::GetCapabilitiesRequest& request,
                                  sandbox::bridge::v1::GetCapabilitiesResponse& response);

  const Deps deps_;
};

}  // namespace bridge
