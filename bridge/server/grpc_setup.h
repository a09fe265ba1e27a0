// SPDX-License-Identifier: Apache-2.0
//
// server/grpc_setup.h — the settings of gRPC that the bridge wants, each with its reason, and the
// process-wide switches of the library.
#pragma once

#include "bridge/server/log.h"
#include "bridge/server/options.h"
#include "grpcpp/server_builder.h"

namespace bridge {

void ApplyTransportSettings(const ServerOptions& options, grpc::ServerBuilder& builder);

// Health, and on demand reflection and channelz, for servers that are built from now on. The
// library has these for the whole process: what was switched on stays on.
void EnableExtraServices(bool reflection, bool channelz);

// gRPC's own messages go to the log as warnings. For the whole process; `log` is used until another
// one is given, or until StopGrpcLog() names it.
void RouteGrpcLog(Log& log);
// Until then they go nowhere: a server that cannot start says why itself, in one line.
void SilenceGrpcLog();
void StopGrpcLog(const Log& log);

}  // namespace bridge
