// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_maker.h — how a process comes to be in its sandbox and is taken away again.
// It is made in several steps, and only whoever knows how far they came can undo them: so they are
// a background task's, which no cut of the call interrupts. Loop thread only.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/process_attachment.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

struct ProcessPlan {
  ProcessKey key = {};  // without the session, which the daemon names
  std::string folder = {};
  std::string wrapper = {};
  bool on_attach = false;
};

struct MadeProcess {
  std::string process_id = {};
  int64_t pid = 0;  // 0: unknown
};

// It runs when this returns, unless `on_attach`. One that nobody was told of, because this failed
// or was cancelled, is forgotten in the background.
Task<absl::StatusOr<MadeProcess>> MakeProcess(SandboxHandle sandbox, ProcessPlan plan);

// Ends a process if it runs, and removes what is kept of it. False: the daemon does not know it.
Task<absl::StatusOr<bool>> ForgetProcess(SandboxHandle sandbox, ProcessKey key, std::string folder);

}  // namespace bridge
