// SPDX-License-Identifier: Apache-2.0
//
// server/health_listener.h — grpc.health.v1 in the clear on an address of its own, and nothing
// else: for probes that speak neither TLS nor tokens, as Kubernetes' do. Made and destroyed by the
// thread that owns it; answers on gRPC's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/server/listen_address.h"
#include "grpcpp/server.h"

namespace bridge {

class HealthListener {
 public:
  // Binds. Until MarkNotReady() "" and every one of `services` are SERVING.
  // Errors: INVALID_ARGUMENT for the flag health_listen.
  static absl::StatusOr<std::unique_ptr<HealthListener>> Start(
      ListenAddress address, const std::vector<std::string>& services);
  // Ends the calls that watch.
  ~HealthListener();
  HealthListener(const HealthListener&) = delete;
  HealthListener& operator=(const HealthListener&) = delete;

  // With the port that was given out.
  const ListenAddress& address() const { return address_; }
  void MarkNotReady();

 private:
  explicit HealthListener(ListenAddress address) : address_(std::move(address)) {}

  ListenAddress address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace bridge
