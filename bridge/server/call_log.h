// SPDX-License-Identifier: Apache-2.0
//
// server/call_log.h — what the log says of calls: at most one line each, when it ends.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/server/log.h"
#include "bridge/service/call_host.h"

namespace bridge {

enum class LogCalls {
  kNone,
  kFailed,  // those that failed by the sandbox's, the upstream's or the bridge's doing
  kAll,
};

// "none", "failed", "all". Errors: INVALID_ARGUMENT for log_calls.
absl::StatusOr<LogCalls> ParseLogCalls(std::string_view text);

// Any thread. The log must outlive it.
class CallLog final : public CallObserver {
 public:
  CallLog(Log& log, LogCalls which) : log_(log), which_(which) {}
  void OnStart(const Method&) override {}
  void OnEnd(const CallRecord& record) override;

 private:
  Log& log_;
  const LogCalls which_;
};

}  // namespace bridge
