// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_ports.h — URLs of a sandbox's ports, for the bridge's callers.
// None of them ever holds the OpenSandbox key. Loop thread only; the client outlives the task.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/endpoint.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

struct PortUrl {
  std::string url = {};
  std::string websocket_url = {};
  HttpHeaders headers = {};  // of every request; may hold credentials
  bool through_server = false;
  std::optional<absl::Time> expires_at = {};
  std::vector<std::string> notes = {};  // what a user of this URL should know
};

// Errors: those of LifecycleClient::GetEndpoint; NOT_YOUR_SANDBOX, STALE_INCARNATION.
Task<absl::StatusOr<PortUrl>> GetPortUrl(LifecycleClient& client, CallContext context,
                                         std::string sandbox_id, std::string incarnation, int port,
                                         bool through_server);

// `expires_at` is rounded down to whole seconds and must lie in the future. Errors: as above,
// INVALID_ARGUMENT, SIGNED_ENDPOINT_UNSUPPORTED (also when the upstream answers a URL that is not
// signed).
Task<absl::StatusOr<PortUrl>> SignPortUrl(LifecycleClient& client, CallContext context,
                                          std::string sandbox_id, std::string incarnation, int port,
                                          absl::Time expires_at);

}  // namespace bridge
