// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_expiry.h — moves a sandbox's expiry, on the server's clock.
//
// The new instant is counted from the server's own time (the Date header of a fresh read), so a
// bridge whose clock is wrong renews correctly. What is answered is what the server stored; an
// answer that is not what was asked for is read again before it is believed. Loop thread only; the
// client outlives the task.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

struct ExpiryRequest {
  // nullopt: only assert that it never expires.
  std::optional<absl::Duration> ttl = {};
  bool never_shorten = false;
};

struct Expiry {
  std::optional<absl::Time> expires_at = {};  // nullopt: never
  bool clamped = false;
  bool unchanged = false;
};

// Errors: NO_EXPIRY, UNSUPPORTED_FEATURE (never, for one that expires), SANDBOX_NOT_RUNNING (paused
// on an upstream that loses a paused sandbox when it is renewed), those of the client.
Task<absl::StatusOr<Expiry>> SetExpiry(LifecycleClient& client, CallContext context,
                                       std::string sandbox_id, std::string incarnation,
                                       ExpiryRequest request);

}  // namespace bridge
