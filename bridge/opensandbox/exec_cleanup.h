// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_cleanup.h — what a command on a stock daemon leaves behind when it has ended or
// nobody wants it any more. Tasks for a TaskScope: they outlive the call. Best effort, bounded.
#pragma once

#include <memory>
#include <optional>

#include "bridge/net/task.h"
#include "bridge/opensandbox/exec_script.h"
#include "bridge/opensandbox/remote_command.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// Ends a command that nobody wants any more: interrupts it, confirms, kills what of its group is
// left, and removes its folder (if any). For a TaskScope; bounded by the context's deadline.
Task<void> KillRemoteCommand(SandboxHandle sandbox, std::shared_ptr<RemoteCommand> command,
                             std::optional<ExecFolder> folder, bool stdin_uploaded);

// Notes for later callers, at folder.cut(), that a caller ended this exec. Best effort.
Task<void> NoteCut(SandboxHandle sandbox, ExecFolder folder);

// Removes an exec's folder. Best effort.
Task<void> RemoveExecFolder(SandboxHandle sandbox, ExecFolder folder, bool stdin_uploaded);

}  // namespace bridge
