// SPDX-License-Identifier: Apache-2.0
//
// epp/sandbox_methods.h — sandbox.* and ports.url: check, convert, call the bridge, convert.
#pragma once

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "frontends/epp/call.h"

namespace bridge::epp {

Task<absl::StatusOr<Json>> CreateSandbox(Call& call);
// Wakes a paused sandbox.
Task<absl::StatusOr<Json>> ConnectSandbox(Call& call);
Task<absl::StatusOr<Json>> GetSandbox(Call& call);
Task<absl::StatusOr<Json>> ListSandboxes(Call& call);
// Succeeds when there is nothing to kill.
Task<absl::StatusOr<Json>> KillSandbox(Call& call);
Task<absl::StatusOr<Json>> SetSandboxTimeout(Call& call);
Task<absl::StatusOr<Json>> PauseSandbox(Call& call);
Task<absl::StatusOr<Json>> ResumeSandbox(Call& call);
Task<absl::StatusOr<Json>> PortUrl(Call& call);

// The request of a create, from its parameters and the configuration. Pure.
absl::StatusOr<v1::CreateSandboxRequest> MakeCreateRequest(const Params& params,
                                                           const CreateSettings& configured);

// A lifetime in seconds as users write it: INVALID_ARGUMENT for what is no time from now on.
absl::StatusOr<absl::Duration> LifetimeOf(const Params& params, const char* field);

}  // namespace bridge::epp
