// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/health_listener.h"

#include <chrono>
#include <utility>

#include "bridge/base/error.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace bridge {

absl::StatusOr<std::unique_ptr<HealthListener>> HealthListener::Start(
    ListenAddress address, const std::vector<std::string>& services) {
  std::unique_ptr<HealthListener> listener(new HealthListener(std::move(address)));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(4 << 10);  // a request is the name of a service
  // Health is served by the callback API; these are for what a plug-in of the process adds.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  int port = -1;
  builder.AddListeningPort(listener->address_.ToString(), grpc::InsecureServerCredentials(), &port);
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr || port <= 0) {
    const std::string why = WhyNotBound(listener->address_);
    return InvalidField("health_listen", "cannot listen on " + listener->address_.ToString() +
                                             (why.empty() ? "" : ": " + why));
  }
  if (!listener->address_.unix_socket) listener->address_.port = port;
  auto* health = listener->server_->GetHealthCheckService();
  for (const std::string& name : services) health->SetServingStatus(name, true);
  return listener;
}

HealthListener::~HealthListener() {
  if (server_ == nullptr) return;
  // Whoever watches would keep it open for ever.
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void HealthListener::MarkNotReady() { server_->GetHealthCheckService()->SetServingStatus(false); }

}  // namespace bridge
