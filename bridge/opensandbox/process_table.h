// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_table.h — every process of a sandbox, whoever started it, and signals to any
// of them. Our own daemon answers from the kernel's table; on a stock one a script reads /proc, and
// is in the list itself. Loop thread only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/exec_client.h"
#include "bridge/opensandbox/process_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// Errors: OUTPUT_TRUNCATED above 8 MiB of arguments; a list that broke off is UPSTREAM_FAILED.
Task<absl::StatusOr<std::vector<ProcessInfo>>> ListProcessTable(SandboxHandle sandbox,
                                                                ExecClient& execs);

// `pid` > 1. The group is that of the process; when no process has the pid, the group of that
// number. Errors: PROCESS_NOT_FOUND; PERMISSION_DENIED, for the sandbox's daemon and its group too:
// whoever ends it loses the sandbox.
Task<absl::Status> SignalPid(SandboxHandle sandbox, int64_t pid, ProcessSignal signal);

// What the exit status of a script that sends a signal means (process_script.h). Pure.
absl::Status SignalScriptError(int exit_status);

// What ListAllScript() printed. Pure; lines that cannot be read are left out.
std::vector<ProcessInfo> ParseProcessList(std::string_view text);
// The body of GET /v1/processes. Pure. Errors: UPSTREAM_PROTOCOL.
absl::StatusOr<std::vector<ProcessInfo>> ParseOwnProcessList(std::string_view body);

}  // namespace bridge
