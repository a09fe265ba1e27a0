// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/log.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/utf8.h"
#include "spdlog/async.h"
#include "spdlog/async_logger.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace bridge {
namespace {

constexpr size_t kQueuedLines = 8192;
constexpr size_t kMaxValueBytes = 400;

class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(std::string_view)> take) : take_(std::move(take)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    take_(std::string_view(line.data(), line.size()));
  }
  void flush_() override {}

  const std::function<void(std::string_view)> take_;
};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

bool IsBare(char c) { return c > ' ' && c < 0x7F && c != '"' && c != '=' && c != '\\'; }

void AppendEscaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (byte < 0x20 || byte == 0x7F) {
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  } else {
    out += c;
  }
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return InvalidField("log_level", "is not debug, info, warning, error or off");
}

std::string LogValue(std::string_view value) {
  const std::string_view shown = Utf8Prefix(value, kMaxValueBytes);
  if (!shown.empty() && shown.size() == value.size() &&
      std::all_of(shown.begin(), shown.end(), IsBare)) {
    return std::string(value);
  }
  std::string out = "\"";
  for (const char c : ToValidUtf8(shown)) AppendEscaped(out, c);
  if (shown.size() < value.size()) out += "...";
  return out + "\"";
}

Log::Log(LogLevel level, std::function<void(std::string_view)> sink)
    : level_(level), pool_(std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1)) {
  spdlog::sink_ptr target;
  if (sink) {
    target = std::make_shared<FunctionSink>(std::move(sink));
  } else {
    target = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::async_logger>(
      "bridge", std::move(target), pool_, spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(SpdlogLevel(level));
  logger->flush_on(spdlog::level::debug);
  logger->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
  logger_ = std::move(logger);
}

Log::~Log() = default;  // the pool's thread writes what is queued and is joined

void Log::Write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!enabled(level)) return;
  std::string line = "msg=" + LogValue(message);
  for (const LogField& field : fields) {
    if (field.value.empty()) continue;
    line += ' ';
    line += field.key;
    line += '=';
    line += LogValue(field.value);
  }
  logger_->log(SpdlogLevel(level), line);
}

int64_t Log::dropped() const { return static_cast<int64_t>(pool_->overrun_counter()); }

}  // namespace bridge
