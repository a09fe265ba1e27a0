// SPDX-License-Identifier: Apache-2.0
//
// Part of go_json.h: objects taken apart.
#include <charconv>
#include <limits>

#include "bridge/base/ascii.h"
#include "bridge/local/execd/go_json.h"

namespace bridge::local::execd {
std::optional<int64_t> JsonInteger(std::string_view number) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return out;
}

JsonFields::JsonFields(const JsonValue& value, std::string_view type, std::string_view go_type)
    : value_(value), type_(type) {
  if (value.kind != JsonValue::Kind::kObject && value.kind != JsonValue::Kind::kNull) {
    error_ = "json: cannot unmarshal " + std::string(value.KindName()) + " into Go value of type " +
             std::string(go_type);
  }
}

const JsonValue* JsonFields::Find(std::string_view name) const {
  const JsonValue* found = nullptr;
  for (const auto& [key, value] : value_.members) {
    if (EqualsIgnoreCase(key, name) && value.kind != JsonValue::Kind::kNull) found = &value;
  }
  return found;
}

void JsonFields::Mismatch(std::string_view what, std::string_view name, std::string_view go_type) {
  error_ = "json: cannot unmarshal " + std::string(what) + " into Go struct field " + type_ + "." +
           std::string(name) + " of type " + std::string(go_type);
}

const JsonValue* JsonFields::Expect(std::string_view name, JsonValue::Kind kind,
                                    std::string_view go_type) {
  if (!ok()) return nullptr;
  const JsonValue* value = Find(name);
  if (value == nullptr) return nullptr;
  if (value->kind == kind) return value;
  Mismatch(value->KindName(), name, go_type);
  return nullptr;
}

void JsonFields::String(std::string_view name, std::string* out) {
  if (const auto* value = Expect(name, JsonValue::Kind::kString, "string")) *out = value->text;
}

void JsonFields::Bool(std::string_view name, bool* out) {
  if (const auto* value = Expect(name, JsonValue::Kind::kBool, "bool")) *out = value->boolean;
}

void JsonFields::Int64(std::string_view name, int64_t* out, std::string_view go_type) {
  const auto* value = Expect(name, JsonValue::Kind::kNumber, go_type);
  if (value == nullptr) return;
  if (const auto number = JsonInteger(value->text)) {
    *out = *number;
  } else {
    Mismatch("number " + value->text, name, go_type);
  }
}

void JsonFields::Uint32(std::string_view name, std::optional<uint32_t>* out) {
  const auto* value = Expect(name, JsonValue::Kind::kNumber, "uint32");
  if (value == nullptr) return;
  const auto number = JsonInteger(value->text);
  if (number && *number >= 0 && *number <= std::numeric_limits<uint32_t>::max()) {
    *out = static_cast<uint32_t>(*number);
  } else {
    Mismatch("number " + value->text, name, "uint32");
  }
}

void JsonFields::StringMap(std::string_view name, std::map<std::string, std::string>* out) {
  const auto* value = Expect(name, JsonValue::Kind::kObject, "map[string]string");
  if (value == nullptr) return;
  for (const auto& [key, item] : value->members) {
    if (item.kind == JsonValue::Kind::kNull) {
      (*out)[key] = "";
    } else if (item.kind == JsonValue::Kind::kString) {
      (*out)[key] = item.text;
    } else {
      Mismatch(item.KindName(), name, "string");
      return;
    }
  }
}

void JsonFields::StringList(std::string_view name, std::vector<std::string>* out) {
  const auto* value = Expect(name, JsonValue::Kind::kArray, "[]string");
  if (value == nullptr) return;
  for (const JsonValue& item : value->items) {
    if (item.kind != JsonValue::Kind::kString && item.kind != JsonValue::Kind::kNull) {
      Mismatch(item.KindName(), name, "string");
      return;
    }
    out->push_back(item.text);
  }
}

}  // namespace bridge::local::execd
