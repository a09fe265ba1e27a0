// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_directory.h — from a sandbox's id to its daemon, remembered.
//
// Resolving asks the lifecycle server for the record (state, incarnation, tenant) and the endpoint
// of port 44772, prefers execd's own port over its proxy, and checks with /ping. The result is kept
// and shared by all calls of the loop, so that a call to a known sandbox costs one request, not
// four. What is kept is a hint: whoever finds the daemon silent calls Forget() and resolves again.
//
// One object per event loop; loop thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/endpoint.h"

namespace bridge {

// A sandbox's daemon as resolved. Immutable but for `probed`; shared by the calls that use it.
struct Daemon {
  std::string sandbox_id = {};
  std::string incarnation = {};
  std::string tenant = {};  // label of the tenant that made it; empty: none
  Endpoint endpoint = {};
  // What opensandbox/capabilities.h found out about this daemon; null until somebody asked.
  std::shared_ptr<struct DaemonCapabilities> probed = {};
};

class SandboxDirectory {
 public:
  virtual ~SandboxDirectory() = default;

  // The daemon of a running sandbox. `incarnation` empty: any.
  // Errors: SANDBOX_NOT_FOUND, NOT_YOUR_SANDBOX, STALE_INCARNATION, SANDBOX_NOT_RUNNING,
  // SANDBOX_UNREACHABLE, UPSTREAM_*; CANCELLED when the task was cancelled.
  virtual Task<absl::StatusOr<std::shared_ptr<Daemon>>> Resolve(CallContext context,
                                                                std::string sandbox_id,
                                                                std::string incarnation) = 0;

  // What to make of a request to the daemon that failed at the transport: forgets the sandbox,
  // looks at its record and answers the better reason (paused, gone, expired), else `failure` as
  // SANDBOX_UNREACHABLE with the endpoint's host; as UPSTREAM_TIMEOUT where the daemon took the
  // request and did not answer it in time.
  virtual Task<absl::Status> Explain(CallContext context, std::string sandbox_id,
                                     absl::Status failure) = 0;

  // Drops what is known of a sandbox: after delete, pause, resume.
  virtual void Forget(std::string_view sandbox_id) = 0;
};

}  // namespace bridge
