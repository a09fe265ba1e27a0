// SPDX-License-Identifier: Apache-2.0
//
// service/policy_validate.h — network policies and changes to them, checked. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge {

// The policy of a sandbox to be made, `spec.network_policy`.
absl::Status CheckPolicy(const sandbox::bridge::v1::NetworkPolicy& policy);

// Targets to be removed may be any that a rule was ever given.
absl::Status CheckPatchNetworkPolicy(const sandbox::bridge::v1::PatchNetworkPolicyRequest& request);

}  // namespace bridge
