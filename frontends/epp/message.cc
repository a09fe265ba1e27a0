// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/message.h"

#include <utility>

#include "fmt/format.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/json_scan.h"

namespace bridge::epp {
namespace {

// Python's own encoder gives up at about a thousand levels.
constexpr int kMaxDepth = 256;

Message Broken(std::string id, int code, std::string_view what, size_t bytes) {
  Message message;
  message.id = id.empty() ? "null" : std::move(id);
  message.error = ProtocolError(code, what);
  message.bytes = bytes;
  return message;
}

std::string_view MemberString(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return {};
  return it->get_ref<const std::string&>();
}

// Stands in a line for what was taken out of it. No text that a request may have holds a NUL.
constexpr std::string_view kMark = "\\u0000long";
constexpr std::string_view kParsedMark("\0long", 5);

// What a line's long text leaves of it. The text itself stays where it is, in `*line`: a request of
// megabytes is in memory once, and not again in the parser and in what the parser makes.
std::string TakeOut(const LongText& text, std::string* line) {
  std::string rest;
  rest.reserve(line->size() - text.size + kMark.size());
  rest.append(*line, 0, text.begin).append(kMark).append(*line, text.begin + text.size);
  line->resize(text.begin + text.size);
  line->erase(0, text.begin);
  return rest;
}

void PutBack(const LongText& text, std::string content, Json* params) {
  const auto it = params->find(text.key);
  // Of members with one name the last counts, and that one may be another.
  if (it == params->end() || !it->is_string()) return;
  auto& value = it->get_ref<std::string&>();
  if (value == kParsedMark) value = std::move(content);
}

Message Interpret(Json document, std::string id, size_t bytes) {
  if (document.is_array()) {
    return Broken({}, kInvalidRequest, "a batch of requests; EPP/1 has one object a line", bytes);
  }
  if (!document.is_object()) return Broken({}, kInvalidRequest, "not an object", bytes);
  const bool has_id = document.contains("id");
  if (has_id && id.empty()) {
    return Broken({}, kInvalidRequest, "id: must be a number or a string", bytes);
  }
  if (MemberString(document, "jsonrpc") != "2.0") {
    return Broken(std::move(id), kInvalidRequest, "jsonrpc: must be \"2.0\"", bytes);
  }
  const std::string_view method = MemberString(document, "method");
  if (method.empty()) {
    return Broken(std::move(id), kInvalidRequest, "method: must be a non-empty string", bytes);
  }
  Message message;
  message.id = std::move(id);
  message.method = method;
  message.bytes = bytes;
  const auto params = document.find("params");
  if (params == document.end() || params->is_null()) return message;
  if (!params->is_object()) {
    message.error = ProtocolError(kInvalidParams, "params: must be an object");
    return message;
  }
  message.params = std::move(*params);
  return message;
}

std::string Envelope(std::string_view id, std::string_view member, std::string_view value) {
  std::string line;
  line.reserve(value.size() + id.size() + 64);
  line.append("{\"jsonrpc\":\"2.0\",\"id\":").append(id).append(",\"").append(member);
  line.append("\":").append(value).append("}\n");
  return line;
}

}  // namespace

Message ParseMessage(std::string line) {
  const size_t bytes = line.size();
  if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  JsonScan scan = ScanJson(&line);
  if (scan.depth > kMaxDepth) {
    return Broken(std::move(scan.id), kInvalidRequest,
                  fmt::format("nested deeper than {} levels", kMaxDepth), bytes);
  }
  const bool cut = scan.long_text.size > 0;
  Json document = Json::parse(cut ? TakeOut(scan.long_text, &line) : std::exchange(line, {}),
                              nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return Broken(std::move(scan.id), kParseError, "the line is not one JSON object in UTF-8",
                  bytes);
  }
  Message message = Interpret(std::move(document), std::move(scan.id), bytes);
  if (cut) PutBack(scan.long_text, std::move(line), &message.params);
  return message;
}

Message OverlongMessage(std::string_view beginning, uint64_t line_bytes) {
  Message message;
  message.id = ScanId(beginning);
  if (message.id.empty()) message.id = "null";
  message.error =
      TooLarge("the request", static_cast<int64_t>(line_bytes), kMaxLineBytes,
               "an upload can have about 6291000 bytes: write larger files in parts, or "
               "fetch them from inside the sandbox");
  return message;
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string RenderResult(std::string_view id, const Json& result) {
  std::string line = Envelope(id, "result", Dump(result));
  if (line.size() <= kMaxLineBytes) return line;
  return RenderError(id, TooLarge("the answer", static_cast<int64_t>(line.size()), kMaxLineBytes,
                                  "ask for less at once"));
}

std::string RenderError(std::string_view id, const absl::Status& error) {
  EppError epp = ToEppError(error);
  constexpr size_t kMaxText = 16 * 1024;
  if (epp.message.size() > kMaxText) epp.message.resize(kMaxText);
  Json value = {{"code", epp.code}, {"message", epp.message}};
  Json data = Json::object();
  if (!epp.sdk_code.empty()) data["sdk_code"] = epp.sdk_code;
  if (!epp.suggestion.empty()) data["suggestion"] = epp.suggestion;
  if (!epp.feature.empty()) data["details"] = {{"feature", epp.feature}};
  if (!data.empty()) value["data"] = std::move(data);
  return Envelope(id, "error", Dump(value));
}

std::string RenderNotification(std::string_view method, const Json& params) {
  std::string line = "{\"jsonrpc\":\"2.0\",\"method\":\"";
  line.append(method).append("\",\"params\":").append(Dump(params)).append("}\n");
  return line;
}

std::string BeginLargeResult(std::string_view id, std::string_view beginning) {
  std::string line = "{\"jsonrpc\":\"2.0\",\"id\":";
  line.append(id).append(",\"result\":").append(beginning);
  return line;
}

std::string EndLargeResult(std::string_view id, std::string line, std::string_view end) {
  line.append(end).append("}\n");
  if (line.size() <= kMaxLineBytes) return line;
  return RenderError(id, TooLarge("the answer", static_cast<int64_t>(line.size()), kMaxLineBytes,
                                  "ask for less at once"));
}

size_t LargeResultCapacity(std::string_view id, std::string_view beginning, std::string_view end) {
  const size_t overhead = EndLargeResult(id, BeginLargeResult(id, beginning), end).size();
  return overhead >= kMaxLineBytes ? 0 : kMaxLineBytes - overhead;
}

size_t EncodedSize(std::string_view text) {
  size_t size = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f') {
      size += 2;
    } else {
      size += byte < 0x20 ? 6 : 1;
    }
  }
  return size;
}

}  // namespace bridge::epp
