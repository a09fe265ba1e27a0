// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/event.h"

#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd {
namespace {

std::string Begin(std::string_view type) {
  std::string out = "{\"type\":\"";
  out.append(type).append("\"");
  return out;
}

void AppendTimestamp(std::string& out, int64_t now_ms) {
  out.append(",\"timestamp\":").append(std::to_string(now_ms));
}

}  // namespace

std::string TextEvent(std::string_view type, std::string_view text, int64_t now_ms) {
  std::string out = Begin(type);
  out.reserve(text.size() + 64);
  if (!text.empty()) {
    out += ",\"text\":";
    AppendGoJsonString(out, text);
  }
  AppendTimestamp(out, now_ms);
  return out + "}\n\n";
}

std::string PingEvent(int64_t now_ms) { return TextEvent("ping", "pong", now_ms); }

std::string CompleteEvent(int64_t execution_ms, int64_t now_ms) {
  std::string out = Begin("execution_complete");
  if (execution_ms != 0) out.append(",\"execution_time\":").append(std::to_string(execution_ms));
  AppendTimestamp(out, now_ms);
  return out + "}\n\n";
}

std::string ErrorEvent(std::string_view value, std::string_view trace, int64_t now_ms) {
  std::string out = Begin("error");
  AppendTimestamp(out, now_ms);
  out += ",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":";
  AppendGoJsonString(out, value);
  out += ",\"traceback\":[";
  AppendGoJsonString(out, trace);
  return out + "]}}\n\n";
}

std::string ErrorBody(std::string_view code, std::string_view message) {
  std::string out = "{\"code\":";
  AppendGoJsonString(out, code);
  if (!message.empty()) {
    out += ",\"message\":";
    AppendGoJsonString(out, message);
  }
  return out + "}";
}

}  // namespace bridge::local::execd
