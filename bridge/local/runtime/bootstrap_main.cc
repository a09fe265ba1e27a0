// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap program; see bootstrap_protocol.h.
#include <cstdlib>
#include <string_view>

#include "bridge/local/runtime/bootstrap_protocol.h"
#include "bridge/local/runtime/launch_mode.h"
#include "bridge/local/runtime/sandbox_mode.h"

int main(int argc, char** argv) {
  namespace runtime = bridge::local::runtime;
  const char* mode = getenv(runtime::kModeVariable);
  if (mode != nullptr && std::string_view(mode) == runtime::kModeLaunch) {
    return runtime::RunLaunchMode(argc, argv);
  }
  if (mode != nullptr && std::string_view(mode) == runtime::kModeSandbox) {
    return runtime::RunSandboxMode();
  }
  return runtime::RunContainerMode(argc, argv);
}
