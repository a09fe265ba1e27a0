// SPDX-License-Identifier: Apache-2.0
//
// epp/network_policy.h — a network policy as OpenSandbox users write it, as the bridge's message.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "frontends/epp/json.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge::epp {

// {"defaultAction": "deny", "egress": [{"action": "allow", "target": "pypi.org"}]}, as an object or
// as JSON text. A member that is not known is refused: a policy with a misspelt member would
// restrict something else than what its author believes.
absl::StatusOr<sandbox::bridge::v1::NetworkPolicy> ParseNetworkPolicy(const Json& value,
                                                                      std::string_view field);

}  // namespace bridge::epp
