// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_state.h — how far a process's output is. Two things tell it, the daemon
// (bytes, markers among them) and a file of the wrapper (markers), and neither at the moment of the
// other. Errors: PROCESS_NOT_FOUND, those of a request to the daemon. Loop thread only.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/pty_codec.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// GET /pty/{session}.
Task<absl::StatusOr<PtyState>> FetchPtyState(SandboxHandle sandbox, std::string session);

// Whether the program was ever started. One that was killed together with its wrapper before it
// printed anything looks to the daemon like one that never was.
Task<absl::StatusOr<bool>> WasProcessStarted(SandboxHandle sandbox, std::string folder);

// Whether its program was started and the wrapper has not seen it end: it has printed no mark
// since.
Task<absl::StatusOr<bool>> IsProcessRunning(SandboxHandle sandbox, std::string folder);

// How many markers the wrapper says that it has printed; it says so right after having done it.
Task<absl::StatusOr<int>> FetchProcessMarks(SandboxHandle sandbox, std::string folder);

}  // namespace bridge
