// SPDX-License-Identifier: Apache-2.0
//
// server/log.h — the bridge's log: one line an event, key=value, on stderr.
//
//   time=2026-01-31T12:00:00.000Z level=info msg="listening on 127.0.0.1:50051"
//
// Writing never blocks a caller: lines go through a bounded queue to one thread, and when whoever
// reads stderr is stuck the oldest waiting lines are dropped and counted. Values that could break a
// line are quoted and escaped; long ones are cut. No field may hold a secret, a payload, a command
// or the name of a sandbox.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spdlog {
class logger;  // NOLINT(readability-identifier-naming)
namespace details {
class thread_pool;  // NOLINT(readability-identifier-naming)
}
}  // namespace spdlog

namespace bridge {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// "debug", "info", "warning", "error", "off". Errors: INVALID_ARGUMENT for log_level.
absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text);

struct LogField {
  std::string_view key;
  std::string value;
};

// Any thread.
class Log {
 public:
  // Null `sink`: stderr. A sink is called by the log's thread with whole lines.
  explicit Log(LogLevel level, std::function<void(std::string_view line)> sink = nullptr);
  ~Log();  // what was written before arrives
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // A field without a value is left out.
  void Write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
  bool enabled(LogLevel level) const { return level >= level_; }
  // Lines that were dropped because nobody took them.
  int64_t dropped() const;

 private:
  const LogLevel level_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<spdlog::logger> logger_;
};

// `value` as it stands behind a key: bare, or quoted with escapes; at most 400 bytes of it.
std::string LogValue(std::string_view value);

}  // namespace bridge
