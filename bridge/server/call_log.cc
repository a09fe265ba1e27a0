// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/call_log.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/base/error.h"
#include "bridge/base/error_catalog.h"

namespace bridge {
namespace {

std::string CodeName(absl::StatusCode code) {
  if (code == absl::StatusCode::kOk) return "OK";
  return absl::StatusCodeToString(code);
}

// Faults of the bridge are for whoever runs it, those of what is behind it are worth a look, those
// of callers are theirs.
LogLevel LevelOf(const CallRecord& record) {
  if (record.code == absl::StatusCode::kOk) return LogLevel::kInfo;
  switch (CatalogEntryOf(record.reason).fault) {
    case Fault::kCaller:
      return LogLevel::kInfo;
    case Fault::kSandbox:
    case Fault::kUpstream:
      return LogLevel::kWarning;
    case Fault::kBridge:
      break;
  }
  return record.reason == ErrorReason::ERROR_REASON_INTERNAL ? LogLevel::kError
                                                             : LogLevel::kWarning;
}

}  // namespace

absl::StatusOr<LogCalls> ParseLogCalls(std::string_view text) {
  if (text == "none") return LogCalls::kNone;
  if (text == "failed") return LogCalls::kFailed;
  if (text == "all") return LogCalls::kAll;
  return InvalidField("log_calls", "is not none, failed or all");
}

void CallLog::OnEnd(const CallRecord& record) {
  if (which_ == LogCalls::kNone) return;
  const LogLevel level = LevelOf(record);
  if (!log_.enabled(level) || (which_ == LogCalls::kFailed && level == LogLevel::kInfo)) return;
  const std::string ms = std::to_string(absl::ToInt64Milliseconds(record.duration));
  if (record.code == absl::StatusCode::kOk) {
    log_.Write(level, "call",
               {{"method", record.method.name},
                {"code", "OK"},
                {"ms", ms},
                {"tenant", std::string(record.tenant)},
                {"trace_id", std::string(record.trace_id)}});
    return;
  }
  log_.Write(level, "call",
             {{"method", record.method.name},
              {"code", CodeName(record.code)},
              {"reason", std::string(ReasonName(record.reason))},
              {"ms", ms},
              {"waiting_for", record.waiting_for},
              {"tenant", std::string(record.tenant)},
              {"trace_id", std::string(record.trace_id)},
              {"error", std::string(record.message)}});
}

}  // namespace bridge
