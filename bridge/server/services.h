// SPDX-License-Identifier: Apache-2.0
//
// server/services.h — the composition root: loops, upstream clients, gRPC services. The one place
// that knows all of them, used by the server and by the bridge that lives inside another program.
//
// To add a client: a member of server/lane.h's Lane. To add a service: one Add() in the constructor
// of Parts. What is not here is answered with UNSUPPORTED_FEATURE.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/base/clock.h"
#include "bridge/net/http.h"
#include "bridge/server/lane.h"
#include "bridge/service/call_host.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_builder.h"

namespace bridge {

// The OpenSandbox behind the bridge. The key is CallHost's.
struct UpstreamOptions {
  std::string url = {};  // of the lifecycle server: "http://127.0.0.1:8080"
  HttpClientOptions http = {};
  // All traffic to sandboxes goes through the server's proxy, for bridges that cannot reach them.
  bool through_server = false;
  // What GetServerInfo says it is.
  std::string kind = "opensandbox";
  std::string isolation = {};
};

struct ServicesOptions {
  UpstreamOptions upstream = {};
  Clock* clock = &Clock::Real();
};

class Services {
 public:
  // `host` must outlive it. Makes no connection. Errors: INVALID_ARGUMENT for field upstream.
  static absl::StatusOr<std::unique_ptr<Services>> Create(ServicesOptions options, CallHost& host);
  // After Drain(), and after the gRPC server is gone.
  ~Services();

  // Every service of this build, and the typed answer to all other methods.
  void Register(grpc::ServerBuilder& builder);
  // "sandbox.bridge.v1.ExecService", for health.
  std::vector<std::string> Names() const;

  Lanes& lanes() { return lanes_; }
  // Tasks that outlive their calls, on all lanes that answer within a second. Not on a loop.
  int BackgroundTasks();

  // When no call runs any more: waits up to `bound` for background tasks, then cancels them. Any
  // thread but the loops'.
  void Drain(absl::Duration bound);

 private:
  class Parts;
  Services(ServicesOptions options, const UpstreamClientsOptions& clients, CallHost& host);

  Lanes lanes_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace bridge
