// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_socket.h — the WebSocket on which a daemon gives and takes what a process
// prints and reads: how it is got, and how it is let go. Loop thread only.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/net/websocket.h"
#include "bridge/opensandbox/process_id.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

absl::Status AlreadyAttached();

// `since`: the daemon's number of the first byte to replay. Errors: PROCESS_NOT_FOUND,
// ALREADY_ATTACHED, those of the transport.
Task<absl::StatusOr<std::unique_ptr<WebSocket>>> OpenProcessSocket(SandboxHandle sandbox,
                                                                   ProcessKey key, int64_t since,
                                                                   bool takeover);

// In the background. An orderly close lets the daemon know at once that nobody holds the process
// any more. `stuck`: it waits for the program to take input, and does not read behind that; but it
// sees that the connection is reset.
void LetGoOfProcess(const SandboxHandle& sandbox, std::unique_ptr<WebSocket> socket, bool stuck);

}  // namespace bridge
