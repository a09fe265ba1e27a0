// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/in_process.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/server/grpc_shutdown.h"
#include "bridge/service/idle_tick.h"
#include "bridge/service/method.h"
#include "grpcpp/server_builder.h"

namespace bridge {

InProcessBridge::InProcessBridge(const Options& options)
    : host_({.api_key = options.api_key, .clock = options.services.clock}) {}

absl::StatusOr<std::unique_ptr<InProcessBridge>> InProcessBridge::Create(Options options) {
  std::unique_ptr<InProcessBridge> bridge(new InProcessBridge(options));
  ASSIGN_OR_RETURN(bridge->services_, Services::Create(std::move(options.services), bridge->host_));
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxReceivedBytes));
  bridge->services_->Register(builder);
  bridge->server_ = builder.BuildAndStart();
  if (bridge->server_ == nullptr) {
    return MakeError(ErrorReason::ERROR_REASON_INTERNAL, "the in-process server did not start");
  }
  if (options.idle_tick) bridge->tick_ = std::make_unique<IdleTick>();
  return bridge;
}

InProcessBridge::~InProcessBridge() { Shutdown(absl::ZeroDuration()); }

std::shared_ptr<grpc::Channel> InProcessBridge::NewChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  return server_->InProcessChannel(arguments);
}

void InProcessBridge::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  ShutdownCalls(*server_, host_, grace);
  server_.reset();
  services_->Drain(grace);
  tick_.reset();
}

}  // namespace bridge
