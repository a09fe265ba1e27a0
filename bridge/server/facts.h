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
  // Both outlive this.
  UpstreamFacts(UpstreamClients& clients, TaskScope& background)
      : clients_(clients), background_(background) {}

  Task<std::string> UpstreamVersion(CallContext context) override;
  Task<absl::StatusOr<Capabilities>> GetCapabilities(CallContext context,
                                                     std::string sandbox_id) override;

 private:
  UpstreamClients& clients_;
  TaskScope& background_;
  std::string version_;  // as of late; empty: not said, or not asked
  absl::Duration version_until_ = -absl::InfiniteDuration();
};

}  // namespace bridge
