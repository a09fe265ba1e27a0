// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_access.h"

#include "bridge/base/error.h"
#include "bridge/opensandbox/error_body.h"
#include "bridge/opensandbox/labels.h"
#include "fmt/format.h"

namespace bridge {

absl::Status NotYourSandbox(std::string_view sandbox_id) {
  return MakeError(ErrorReason::ERROR_REASON_NOT_YOUR_SANDBOX,
                   fmt::format("sandbox {} belongs to another tenant", sandbox_id),
                   {.metadata = {{"sandbox_id", std::string(sandbox_id)}}});
}

absl::Status StaleIncarnation(std::string_view sandbox_id) {
  return MakeError(ErrorReason::ERROR_REASON_STALE_INCARNATION,
                   fmt::format("sandbox {} is not the incarnation that was expected", sandbox_id),
                   {.metadata = {{"sandbox_id", std::string(sandbox_id)}}});
}

std::string DescribeState(const SandboxRecord& record) {
  std::string why = record.state_reason;
  if (!record.state_message.empty()) {
    if (!why.empty()) why += ": ";
    why += record.state_message;
  }
  const std::string state = record.state_text.empty() ? "in no known state" : record.state_text;
  if (why.empty()) return OneLine(state, 100);
  return fmt::format("{} ({})", OneLine(state, 100), OneLine(why, kMaxUpstreamWords));
}

absl::Status NotRunning(const SandboxRecord& record) {
  return MakeError(
      ErrorReason::ERROR_REASON_SANDBOX_NOT_RUNNING,
      fmt::format("sandbox {} is {}", record.id, DescribeState(record)),
      {.metadata = {{"sandbox_id", record.id}, {"state", OneLine(record.state_text, 100)}}});
}

absl::Status CheckAccess(const CallContext& context, const SandboxRecord& record,
                         std::string_view incarnation) {
  if (!BelongsTo(record, context.tenant)) return NotYourSandbox(record.id);
  if (!incarnation.empty() && incarnation != IncarnationOf(record)) {
    return StaleIncarnation(record.id);
  }
  return absl::OkStatus();
}

}  // namespace bridge
