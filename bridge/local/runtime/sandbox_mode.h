// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/sandbox_mode.h — the bootstrap program inside of a sandbox: process 1 of it.
#pragma once

namespace bridge::local::runtime {

// As the local server starts it; see bootstrap_protocol.h for its descriptors. Returns the
// entrypoint's exit code.
int RunSandboxMode();

// As a container's entrypoint under a real OpenSandbox server; argv[1…] is the user's entrypoint.
int RunContainerMode(int argc, char** argv);

}  // namespace bridge::local::runtime
