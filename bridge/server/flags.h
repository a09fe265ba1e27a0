// SPDX-License-Identifier: Apache-2.0
//
// server/flags.h — the command line and environment of sandbox_bridge as options.
//
// Every flag may be given as SANDBOX_BRIDGE_<FLAG> in the environment; the command line wins. An
// environment variable that is set to nothing counts as not set. Secrets come from files or the
// environment, never from the command line, which everybody on the machine can read.
#pragma once

#include "absl/status/statusor.h"
#include "bridge/server/local_upstream.h"
#include "bridge/server/log.h"
#include "bridge/server/options.h"
#include "bridge/server/run.h"

namespace bridge {

struct Configuration {
  ServerOptions server;
  DrainOptions drain;
  LogLevel log_level = LogLevel::kInfo;
  bool local_upstream = false;  // --upstream=local: somebody has to start one
  LocalUpstreamOptions local = {};
};

// Reads argv and the environment. Ends the process for --help, and with exit code 1 for a flag that
// does not exist. Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<Configuration> ReadConfiguration(int argc, char** argv);

}  // namespace bridge
