// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_reader.h"

#include <utility>

#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/sandbox_access.h"

namespace bridge {

Task<absl::StatusOr<Reading>> ReadSandbox(LifecycleClient& client, CallContext context,
                                          std::string sandbox_id, std::string incarnation) {
  CO_ASSIGN_OR_RETURN(Reading reading, co_await client.Get(context, sandbox_id));
  CO_RETURN_IF_ERROR(CheckAccess(context, reading.record, incarnation));
  co_return reading;
}

Task<absl::Status> CheckSandbox(LifecycleClient& client, CallContext context,
                                std::string sandbox_id, std::string incarnation) {
  if (context.tenant.empty() && incarnation.empty()) co_return absl::OkStatus();
  const absl::StatusOr<Reading> reading = co_await ReadSandbox(
      client, std::move(context), std::move(sandbox_id), std::move(incarnation));
  co_return reading.status();
}

}  // namespace bridge
