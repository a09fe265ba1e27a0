// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/resource_usage.h — what a sandbox uses, as its daemon sees it.
// Loop thread only; the client outlives everything here.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/net/event_stream.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/daemon_client.h"
#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

// Takes about a second: the daemon measures.
Task<absl::StatusOr<ResourceSample>> ReadResourceUsage(DaemonClient& client, CallContext context,
                                                       std::string sandbox_id,
                                                       std::string incarnation);

// Samples as the daemon sends them, about every two seconds. A local variable of one task.
//   CO_RETURN_IF_ERROR(co_await watch.Open());
//   while (true) { CO_ASSIGN_OR_RETURN(auto sample, co_await watch.Next()); ... }
class ResourceWatch {
 public:
  ResourceWatch(DaemonClient& client, CallContext context, std::string sandbox_id,
                std::string incarnation);

  Task<absl::Status> Open();
  // Errors: SANDBOX_UNREACHABLE and the like when the stream ends: a watch has no end of its own.
  Task<absl::StatusOr<ResourceSample>> Next();

 private:
  Task<absl::Status> Ended();

  DaemonClient& client_;
  const CallContext context_;
  const std::string sandbox_id_;
  const std::string incarnation_;
  std::shared_ptr<Daemon> daemon_;
  std::unique_ptr<Transfer> transfer_;
  EventStreamParser parser_;
  std::string chunk_;
};

}  // namespace bridge
