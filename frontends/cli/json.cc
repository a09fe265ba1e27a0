// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/json.h"

#include <fmt/format.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "bridge/base/utf8.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// "SandboxState" → "SANDBOX_STATE_", the prefix of its values by the style of the .proto files.
std::string PrefixOf(const google::protobuf::EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    if (c >= 'A' && c <= 'Z' && !prefix.empty()) prefix += '_';
    prefix += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return prefix + '_';
}

Json EnumJson(const FieldDescriptor& field, int number) {
  const EnumValueDescriptor* value = field.enum_type()->FindValueByNumber(number);
  if (value == nullptr) return number;  // newer than this build
  const std::string prefix = PrefixOf(*field.enum_type());
  const std::string& name = value->name();
  return name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
}

Json MessageJson(const Message& message) {
  const std::string& type = message.GetDescriptor()->full_name();
  if (type == "google.protobuf.Timestamp") {
    return google::protobuf::util::TimeUtil::ToString(
        static_cast<const google::protobuf::Timestamp&>(message));
  }
  if (type == "google.protobuf.Duration") {
    const auto& duration = static_cast<const google::protobuf::Duration&>(message);
    return static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
  }
  return ToJson(message);
}

// `index` is the element of a repeated field, -1 for a single one.
Json ScalarJson(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool many = index >= 0;
  const auto get = [&](auto single, auto repeated) {
    return many ? (reflection.*repeated)(message, &field, index)
                : (reflection.*single)(message, &field);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_INT32:
      return get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumJson(field, get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue));
    case FieldDescriptor::CPPTYPE_STRING:
      return TextOrEscaped(get(&Reflection::GetString, &Reflection::GetRepeatedString));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(many ? reflection.GetRepeatedMessage(message, &field, index)
                              : reflection.GetMessage(message, &field));
  }
  return nullptr;
}

Json MapJson(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  // Sorted, so that the same map prints the same way every time.
  std::map<std::string, Json> sorted;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const auto& key = *field.message_type()->map_key();
    const auto& value = *field.message_type()->map_value();
    const Json name = ScalarJson(entry, key, -1);
    sorted[name.is_string() ? name.get<std::string>() : name.dump()] = ScalarJson(entry, value, -1);
  }
  Json object = Json::object();
  for (auto& [key, value] : sorted) object[key] = std::move(value);
  return object;
}

Json ListJson(const Message& message, const FieldDescriptor& field) {
  Json list = Json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    if (field.type() == FieldDescriptor::TYPE_BYTES) {
      Json element = Json::object();
      PutBytes(element, "data", message.GetReflection()->GetRepeatedString(message, &field, i));
      list.push_back(element.contains("data") ? element["data"] : element);
    } else {
      list.push_back(ScalarJson(message, field, i));
    }
  }
  return list;
}

}  // namespace

Json ToJson(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_map()) {
      object[field.name()] = MapJson(message, field);
    } else if (field.is_repeated()) {
      object[field.name()] = ListJson(message, field);
    } else if (field.has_presence() && !reflection.HasField(message, &field)) {
      continue;
    } else if (field.type() == FieldDescriptor::TYPE_BYTES) {
      PutBytes(object, field.name(), reflection.GetString(message, &field));
    } else {
      object[field.name()] = ScalarJson(message, field, -1);
    }
  }
  return object;
}

void PutBytes(Json& object, std::string_view key, const std::string& bytes) {
  if (IsValidUtf8(bytes)) {
    object[std::string(key)] = bytes;
  } else {
    object[fmt::format("{}_base64", key)] = absl::Base64Escape(bytes);
  }
}

std::string TextOrEscaped(std::string_view text) {
  return IsValidUtf8(text) ? std::string(text) : Printable(text);
}

std::string JsonLine(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace bridge::cli
