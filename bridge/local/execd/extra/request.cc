// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/request.h"

#include "bridge/base/signal_names.h"
#include "bridge/base/utf8.h"

namespace bridge::local::execd::extra {
namespace {

std::string Between(int64_t least, int64_t most) {
  return "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

}  // namespace

StrictObject::StrictObject(std::string_view body) {
  JsonParse parsed = ParseGoJson(body);
  if (!IsValidUtf8(body)) {
    failure_ = Invalid("", "the body is not UTF-8");
  } else if (!parsed.error.empty()) {
    failure_ = Invalid("", "the body is not JSON: " + parsed.error);
  } else if (parsed.value.kind != JsonValue::Kind::kObject) {
    failure_ = Invalid("", "the body is not an object");
  } else if (body.find_first_not_of(" \t\r\n", parsed.consumed) != std::string_view::npos) {
    failure_ = Invalid("", "something follows the body's object");
  }
  if (!failure_) value_ = std::move(parsed.value);
}

void StrictObject::Fail(std::string_view field, std::string_view problem) {
  if (!failure_) failure_ = Invalid(field, std::string(field) + " " + std::string(problem));
}

const JsonValue* StrictObject::Take(std::string_view name, JsonValue::Kind kind) {
  asked_.emplace(name);
  const JsonValue* found = nullptr;
  for (const auto& [key, value] : value_.members) {
    if (key != name) continue;
    if (found != nullptr) Fail(name, "is given twice");
    found = &value;
  }
  if (failure_ || found == nullptr || found->kind == JsonValue::Kind::kNull) return nullptr;
  if (found->kind == kind) return found;
  Fail(name, "has the wrong type: " + std::string(found->KindName()));
  return nullptr;
}

void StrictObject::String(std::string_view name, std::optional<std::string>* out) {
  const JsonValue* value = Take(name, JsonValue::Kind::kString);
  if (value == nullptr) return;
  if (value->text.find('\0') != std::string::npos) return Fail(name, "holds NUL");
  *out = value->text;
}

void StrictObject::Bool(std::string_view name, bool* out) {
  if (const JsonValue* value = Take(name, JsonValue::Kind::kBool)) *out = value->boolean;
}

void StrictObject::Integer(std::string_view name, int64_t least, int64_t most,
                           std::optional<int64_t>* out) {
  const JsonValue* value = Take(name, JsonValue::Kind::kNumber);
  if (value == nullptr) return;
  const auto number = JsonInteger(value->text);
  if (!number || *number < least || *number > most) return Fail(name, Between(least, most));
  *out = number;
}

void StrictObject::StringList(std::string_view name, std::vector<std::string>* out) {
  const JsonValue* value = Take(name, JsonValue::Kind::kArray);
  if (value == nullptr) return;
  for (const JsonValue& item : value->items) {
    if (item.kind != JsonValue::Kind::kString) return Fail(name, "must hold strings only");
    if (item.text.find('\0') != std::string::npos) return Fail(name, "holds NUL");
    out->push_back(item.text);
  }
}

void StrictObject::StringMap(std::string_view name, std::map<std::string, std::string>* out) {
  const JsonValue* value = Take(name, JsonValue::Kind::kObject);
  if (value == nullptr) return;
  for (const auto& [key, item] : value->members) {
    if (item.kind != JsonValue::Kind::kString) return Fail(name, "must hold strings only");
    if (key.find('\0') != std::string::npos || item.text.find('\0') != std::string::npos) {
      return Fail(name, "holds NUL");
    }
    if (!out->emplace(key, item.text).second) return Fail(name, "has a name twice");
  }
}

void StrictObject::StringOrInteger(std::string_view name, std::optional<std::string>* out) {
  asked_.emplace(name);
  for (const auto& [key, value] : value_.members) {
    if (key != name) continue;
    if (value.kind == JsonValue::Kind::kNumber) {
      *out = value.text;
      return;
    }
  }
  String(name, out);
}

std::optional<Failure> StrictObject::Finish() {
  for (const auto& [key, value] : value_.members) {
    if (!failure_ && asked_.count(key) == 0) failure_ = Invalid(key, "there is no such field");
  }
  return failure_;
}

// ---- queries

void StrictQuery::Fail(std::string_view field, std::string_view problem) {
  if (!failure_) failure_ = Invalid(field, std::string(field) + " " + std::string(problem));
}

void StrictQuery::String(std::string_view name, std::optional<std::string>* out) {
  asked_.emplace(name);
  bool found = false;
  for (const http::QueryParam& param : request_.query) {
    if (param.name != name) continue;
    if (found) return Fail(name, "is given twice");
    if (param.bad_escape) return Fail(name, "has a bad escape");
    found = true;
    *out = param.value;
  }
}

void StrictQuery::Integer(std::string_view name, int64_t least, int64_t most,
                          std::optional<int64_t>* out) {
  std::optional<std::string> text;
  String(name, &text);
  if (!text) return;
  const auto number = JsonInteger(*text);
  if (!number || *number < least || *number > most) return Fail(name, Between(least, most));
  *out = number;
}

void StrictQuery::Flag(std::string_view name, bool* out) {
  std::optional<std::string> text;
  String(name, &text);
  if (!text) return;
  if (*text != "0" && *text != "1") return Fail(name, "must be 0 or 1");
  *out = *text == "1";
}

void StrictQuery::Path(std::string_view name, std::string* out) {
  std::optional<std::string> text;
  String(name, &text);
  if (!text || text->empty()) return Fail(name, "is missing");
  if (text->front() != '/') return Fail(name, "must be absolute");
  if (text->find('\0') != std::string::npos) return Fail(name, "holds NUL");
  *out = *text;
}

std::optional<Failure> StrictQuery::Finish() {
  for (const http::QueryParam& param : request_.query) {
    if (!failure_ && asked_.count(param.name) == 0) {
      failure_ = Invalid(param.name, "there is no such parameter");
    }
  }
  return failure_;
}

std::optional<int> ParseSignal(std::string_view text, bool zero_allowed) {
  if (const auto number = JsonInteger(text)) {
    const int least = zero_allowed ? 0 : 1;
    if (*number < least || *number > kMaxSignal) return std::nullopt;
    return static_cast<int>(*number);
  }
  return SignalNumber(text);
}

}  // namespace bridge::local::execd::extra
