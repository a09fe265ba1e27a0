// SPDX-License-Identifier: Apache-2.0
//
// server/facts.h — what GetServerInfo and GetCapabilities answer from: the upstream's own word and
// what was found out about a sandbox's daemon. Control lane only.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "bridge/net/task_scope.h"
#include "bridge/server/upstream.h"
#include "bridge/service/bridge_service.h"

namespace bridge {

class UpstreamFacts final : public BridgeFacts {
 public:
  // What the upstream runs its sandboxes with.
  enum class Runtime { kUnknown, kDocker, kOther };

  // Both outlive this. `local`: the upstream is the bridge's own local OpenSandbox.
  UpstreamFacts(UpstreamClients& clients, TaskScope& background, bool local)
      : clients_(clients), background_(background), local_(local) {}

  Task<std::string> UpstreamVersion(CallContext context) override;
  Task<absl::StatusOr<Capabilities>> GetCapabilities(CallContext context,
                                                     std::string sandbox_id) override;

 private:
  UpstreamClients& clients_;
  TaskScope& background_;
  const bool local_;
  Runtime runtime_ = Runtime::kUnknown;  // asked until known; it does not change
  std::string version_;                  // as of late; empty: not said, or not asked
  absl::Duration version_until_ = -absl::InfiniteDuration();
};

}  // namespace bridge
