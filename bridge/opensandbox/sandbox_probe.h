// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_probe.h — looks at a sandbox and changes nothing.
// Loop thread only; client and finder outlive the task.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/daemon_finder.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

struct Probe {
  enum class Sight { kExists, kNotFound, kFailed };
  enum class Daemon { kNotAsked, kAnswers, kSilent };

  Sight sight = Sight::kFailed;
  SandboxRecord record = {};  // kExists
  Daemon daemon = Daemon::kNotAsked;
  absl::Status failure = {};  // kFailed: why it could not be looked at
};

// Fails only when the call was cancelled.
Task<absl::StatusOr<Probe>> ProbeSandbox(LifecycleClient& client, DaemonFinder& finder,
                                         CallContext context, std::string sandbox_id,
                                         std::string incarnation, bool check_daemon);

}  // namespace bridge
