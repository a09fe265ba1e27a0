// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap program; see bootstrap_protocol.h.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bridge/local/runtime/bootstrap_protocol.h"
#include "bridge/local/runtime/launch_mode.h"
#include "bridge/local/runtime/sandbox_mode.h"

namespace bridge::local::runtime {
namespace {

int Run(int argc, char** argv) {
  const char* mode = getenv(kModeVariable);
  if (mode != nullptr && std::string_view(mode) == kModeLaunch) return RunLaunchMode(argc, argv);
  if (mode != nullptr && std::string_view(mode) == kModeSandbox) return RunSandboxMode();
  return RunContainerMode(argc, argv);
}

}  // namespace
}  // namespace bridge::local::runtime

int main(int argc, char** argv) {
  const int code = bridge::local::runtime::Run(argc, argv);
  fflush(nullptr);
  // Nothing is left to do, and a sanitizer shall not begin something: its search for leaks starts
  // a process, which whoever kills all processes below this one would take for one of them.
  _exit(code);
}
