// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_reader.h — one sandbox's record, for a caller who may see it.
// Loop thread only; `client` outlives the task.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

// Errors: those of LifecycleClient::Get, NOT_YOUR_SANDBOX, STALE_INCARNATION.
Task<absl::StatusOr<Reading>> ReadSandbox(LifecycleClient& client, CallContext context,
                                          std::string sandbox_id, std::string incarnation);

// The same, read only where there is something to check: a tenant or an incarnation.
Task<absl::Status> CheckSandbox(LifecycleClient& client, CallContext context,
                                std::string sandbox_id, std::string incarnation);

}  // namespace bridge
