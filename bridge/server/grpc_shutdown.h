// SPDX-License-Identifier: Apache-2.0
//
// server/grpc_shutdown.h — ends a gRPC server whose calls belong to a CallHost.
#pragma once

#include "absl/time/time.h"
#include "bridge/service/call_host.h"
#include "grpcpp/server.h"

namespace bridge {

// Takes no new calls, lets those that run end within `grace`, then interrupts them (DRAINING).
// Returns when every call has ended and its object is gone. Streams that are not ours (health
// watches, reflection) end with the last call. Blocks; not on a loop.
void ShutdownCalls(grpc::Server& server, CallHost& host, absl::Duration grace);

}  // namespace bridge
