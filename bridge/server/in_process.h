// SPDX-License-Identifier: Apache-2.0
//
// server/in_process.h — a whole bridge inside another program: the same services behind gRPC's
// in-process channel. Listens nowhere, logs nothing, counts nothing, takes every caller.
//
// Any thread. Starting it costs two threads and no network.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/server/services.h"
#include "bridge/service/call_host.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"

namespace bridge {

class IdleTick;

class InProcessBridge {
 public:
  struct Options {
    ServicesOptions services = {};
    std::string api_key = {};  // secret
    // Keeps answers quick after idle times (service/idle_tick.h); costs a thread.
    bool idle_tick = true;
  };

  // Errors: INVALID_ARGUMENT for the upstream.
  static absl::StatusOr<std::unique_ptr<InProcessBridge>> Create(Options options);
  // Shutdown(0 s) if nobody called it.
  ~InProcessBridge();

  std::shared_ptr<grpc::Channel> NewChannel();
  // Calls get `grace` to end, then as long again for what they left behind (kills, deletions).
  // After it the channels answer UNAVAILABLE.
  void Shutdown(absl::Duration grace);

 private:
  explicit InProcessBridge(const Options& options);

  CallHost host_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<IdleTick> tick_;
};

}  // namespace bridge
