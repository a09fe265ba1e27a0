// SPDX-License-Identifier: Apache-2.0
//
// epp/process_methods.h — process.*: what runs in a sandbox, and signals to it.
//
// A `pid` is what process.list gave: a number for a process of the sandbox, or the process_id of a
// command or terminal, which names it from any plugin process.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "frontends/epp/call.h"

namespace bridge::epp {

Task<absl::StatusOr<Json>> ListProcesses(Call& call);
Task<absl::StatusOr<Json>> SignalProcess(Call& call);
// SIGKILL.
Task<absl::StatusOr<Json>> KillProcess(Call& call);
// E8004: a command takes its input when it starts (exec.start's `stdin`).
Task<absl::StatusOr<Json>> WriteProcessStdin(Call& call);

// A number of the sandbox's kernel, or an id of the bridge.
using ProcessName = std::variant<int64_t, std::string>;
absl::StatusOr<ProcessName> ProcessNameOf(const Json& value, std::string_view field);

}  // namespace bridge::epp
