// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_handle.h"

#include <utility>

#include "bridge/base/status_macros.h"

namespace bridge {

Task<absl::StatusOr<SandboxHandle>> FindSandbox(DaemonClient& client, TaskScope& background,
                                                CallContext context, SandboxTarget target) {
  CO_ASSIGN_OR_RETURN(
      std::shared_ptr<Daemon> daemon,
      co_await client.directory().Resolve(context, target.sandbox_id, target.incarnation));
  absl::StatusOr<std::shared_ptr<DaemonCapabilities>> capabilities =
      co_await ProbeDaemon(client, context, daemon);
  if (!capabilities.ok()) co_return capabilities.status();
  co_return SandboxHandle{client, background, std::move(context), std::move(daemon),
                          *std::move(capabilities)};
}

}  // namespace bridge
