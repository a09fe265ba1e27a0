// SPDX-License-Identifier: Apache-2.0
//
// sbx — sandboxes from the command line, through a sandbox bridge.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bridge/base/standard_streams.h"
#include "frontends/cli/app.h"

RESERVE_STANDARD_STREAMS_BEFORE_MAIN;

int main(int argc, char** argv) {
  // A reader that goes away is an error of write(), with a remote command to kill first.
  signal(SIGPIPE, SIG_IGN);
  // gRPC's own log lines are for its developers; what they say is in our failures.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  bridge::cli::Interrupts interrupts([](int exit_code) { _exit(exit_code); });
  interrupts.Watch();
  bridge::cli::Streams streams(STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO);
  const std::vector<std::string> args(argv + 1, argv + argc);
  return bridge::cli::RunApp(args, streams, interrupts,
                             [](const std::string& name) -> std::optional<std::string> {
                               const char* value = std::getenv(name.c_str());
                               if (value == nullptr) return std::nullopt;
                               return value;
                             });
}
