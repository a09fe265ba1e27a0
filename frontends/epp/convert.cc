// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/convert.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "bridge/base/error.h"
#include "bridge/base/signal_names.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/values.h"

namespace bridge::epp {
namespace {

std::optional<uint32_t> Number32(std::string_view text) {
  uint32_t number = 0;
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || ec != std::errc() || ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  const int64_t seconds = absl::ToInt64Seconds(duration);
  proto.set_seconds(seconds);
  proto.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
  return proto;
}

absl::StatusOr<std::map<std::string, std::string>> EnvironmentOf(const Json* value,
                                                                 std::string_view field) {
  std::map<std::string, std::string> env;
  if (value == nullptr) return env;
  if (!value->is_object()) return InvalidField(field, "must be an object");
  for (const auto& [name, member] : value->items()) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      return InvalidField(field, "a name is empty, or holds \"=\" or NUL");
    }
    if (member.is_null()) continue;
    if (member.is_boolean()) {
      env[name] = member.get<bool>() ? "true" : "false";
    } else {
      ASSIGN_OR_RETURN(env[name], AsTextOrNumber(member, fmt::format("{}.{:.64}", field, name)));
    }
  }
  return env;
}

void SetEnv(const std::map<std::string, std::string>& env,
            google::protobuf::RepeatedPtrField<sandbox::bridge::v1::EnvVar>* target) {
  for (const auto& [name, value] : env) {
    auto* variable = target->Add();
    variable->set_name(name);
    variable->set_value(value);
  }
}

absl::Status SetUser(std::string_view text, std::string_view field,
                     sandbox::bridge::v1::User* user) {
  const size_t colon = text.find(':');
  const auto uid = Number32(text.substr(0, colon));
  if (!uid.has_value()) {
    if (colon != text.npos) return InvalidField(field, "must be a name, a uid or uid:gid");
    user->set_name(std::string(text));
    return absl::OkStatus();
  }
  user->mutable_ids()->set_uid(*uid);
  if (colon == text.npos) return absl::OkStatus();
  const auto gid = Number32(text.substr(colon + 1));
  if (!gid.has_value()) return InvalidField(field, "must be a name, a uid or uid:gid");
  user->mutable_ids()->set_gid(*gid);
  return absl::OkStatus();
}

absl::StatusOr<int> SignalOf(const Json& value, std::string_view field) {
  if (value.is_number_integer()) {
    ASSIGN_OR_RETURN(const int64_t number, AsInteger(value, field, 1, kMaxSignal));
    return static_cast<int>(number);
  }
  if (value.is_string()) {
    if (const auto number = SignalNumber(value.get_ref<const std::string&>())) return *number;
  }
  return InvalidField(field, "must be a number from 1 to 64, or a name such as TERM or SIGTERM");
}

absl::StatusOr<uint32_t> ModeOf(const Json& value, std::string_view field) {
  constexpr int64_t kMaxMode = 07777;
  if (!value.is_string()) {
    ASSIGN_OR_RETURN(const int64_t bits, AsInteger(value, field, 0, kMaxMode));
    return static_cast<uint32_t>(bits);
  }
  std::string_view text = value.get_ref<const std::string&>();
  if (text.starts_with("0o")) text.remove_prefix(2);
  uint32_t bits = 0;
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), bits, 8);
  if (text.empty() || ec != std::errc() || ptr != text.data() + text.size() || bits > kMaxMode) {
    return InvalidField(field, "must be permission bits, as octal text such as \"0644\"");
  }
  return bits;
}

}  // namespace bridge::epp
