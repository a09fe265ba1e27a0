// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_policy.h — the egress policy of a running sandbox.
// Loop thread only; the client outlives the task.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

// Errors: UNSUPPORTED_FEATURE (made without a policy, or the server has no such route),
// SANDBOX_NOT_RUNNING, SANDBOX_UNREACHABLE (its sidecar does not answer), those of the client.
Task<absl::StatusOr<NetworkPolicyStatus>> GetPolicy(LifecycleClient& client, CallContext context,
                                                    std::string sandbox_id,
                                                    std::string incarnation);

// Adds, then removes, then reads what is in force. Also UNSUPPORTED_FEATURE: see ProveDenials.
Task<absl::StatusOr<NetworkPolicyStatus>> PatchPolicy(LifecycleClient& client, CallContext context,
                                                      std::string sandbox_id,
                                                      std::string incarnation,
                                                      std::vector<NetworkRule> add,
                                                      std::vector<std::string> remove_targets);

// UNSUPPORTED_FEATURE where one of the rules denies an address and the sandbox's sidecar guards
// none: it takes the rule all the same. Costs a request only where there is such a rule; a sidecar
// that does not answer yet is asked again until the loop's time `until`. A server without the route
// cannot be asked, and passes.
Task<absl::Status> ProveDenials(LifecycleClient& client, CallContext context,
                                std::string sandbox_id, std::vector<NetworkRule> rules,
                                absl::Duration until);

}  // namespace bridge
