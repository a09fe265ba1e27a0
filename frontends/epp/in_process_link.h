// SPDX-License-Identifier: Apache-2.0
//
// epp/in_process_link.h — the bridge that the plugin carries itself. The only file of the plugin
// that knows more of the bridge than its API.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "frontends/epp/bridge_link.h"

namespace bridge::epp {

// Makes no connection. INVALID_ARGUMENT names the setting.
absl::StatusOr<std::unique_ptr<BridgeLink>> MakeInProcessLink(const Config& config);

// A remote bridge where `config` names one, else the plugin's own.
absl::StatusOr<std::unique_ptr<BridgeLink>> MakeLink(const Config& config);

}  // namespace bridge::epp
