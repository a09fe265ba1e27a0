// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_access.h — may this call touch this sandbox? The checks that every operation
// on a record makes, and their failures. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

// NOT_YOUR_SANDBOX when the caller's tenant did not make it; STALE_INCARNATION when `incarnation`
// is given and is another one's.
absl::Status CheckAccess(const CallContext& context, const SandboxRecord& record,
                         std::string_view incarnation);

absl::Status NotYourSandbox(std::string_view sandbox_id);
absl::Status StaleIncarnation(std::string_view sandbox_id);
// "sandbox x is Paused (CONTAINER_PAUSED: ...)", metadata state.
absl::Status NotRunning(const SandboxRecord& record);
// "Failed (CONTAINER_EXITED_ERROR: Sandbox container exited with code 3.)"
std::string DescribeState(const SandboxRecord& record);

}  // namespace bridge
