// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_diagnostics.h — why a sandbox is as it is, without its secrets.
// Loop thread only; the client outlives the task.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

inline constexpr size_t kMaxDiagnosticsBytes = 1000 << 10;  // with its message below 1 MiB

struct SandboxDiagnostics {
  std::string text = {};  // the newest part
  bool truncated = false;
  bool redacted = false;
};

Task<absl::StatusOr<SandboxDiagnostics>> GetDiagnostics(LifecycleClient& client,
                                                        CallContext context, std::string sandbox_id,
                                                        std::string incarnation,
                                                        DiagnosticsKind kind, int tail);

}  // namespace bridge
