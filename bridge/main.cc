// SPDX-License-Identifier: Apache-2.0
//
// sandbox_bridge: flags → options → Server; signals.

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "bridge/base/descriptor_limit.h"
#include "bridge/base/standard_streams.h"
#include "bridge/server/flags.h"
#include "bridge/server/local_upstream.h"
#include "bridge/server/log.h"
#include "bridge/server/run.h"
#include "bridge/server/server.h"
#include "bridge/server/signals.h"

namespace bridge {
namespace {

// One line for whoever reads the supervisor's log; exit code 1.
int Fail(const absl::Status& status) {
  const auto message = status.message();
  std::fprintf(stderr, "sandbox_bridge: %.*s\n", static_cast<int>(message.size()), message.data());
  return 1;
}

int Main(int argc, char** argv) {
  RaiseDescriptorLimit();  // these two before any thread
  Signals signals;
  absl::StatusOr<Configuration> configuration = ReadConfiguration(argc, argv);
  if (!configuration.ok()) return Fail(configuration.status());
  Log log(configuration->log_level);
  std::unique_ptr<LocalUpstream> local;  // goes down after the server
  if (configuration->local_upstream) {
    auto started = StartLocalUpstream(configuration->local, log, configuration->server);
    if (!started.ok()) return Fail(started.status());
    local = *std::move(started);
  }
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Create(std::move(configuration->server), log);
  if (!server.ok()) return Fail(server.status());
  return RunUntilSignal(**server, signals, log, configuration->drain);
}

}  // namespace
}  // namespace bridge

RESERVE_STANDARD_STREAMS_BEFORE_MAIN;

int main(int argc, char** argv) { return bridge::Main(argc, argv); }
