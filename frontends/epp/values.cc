// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/values.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "bridge/base/ascii.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/errors.h"

namespace bridge::epp {
namespace {

constexpr std::string_view kNulProblem =
    "holds NUL or half of a surrogate pair, which cannot be passed on";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::optional<double> ParseNumber(std::string_view text) {
  text = Trimmed(text);
  if (text.starts_with('\0')) text.remove_prefix(1);  // json_scan.h
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || ptr != text.data() + text.size()) return std::nullopt;
  if (ec == std::errc::result_out_of_range) {
    return text[0] == '-' ? -std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::infinity();
  }
  if (ec != std::errc()) return std::nullopt;
  return value;
}

absl::Status WrongType(std::string_view field, std::string_view wanted) {
  return ProtocolError(kInvalidParams, fmt::format("{}: must be {}", field, wanted));
}

}  // namespace

absl::StatusOr<std::string> AsText(const Json& value, std::string_view field) {
  if (!value.is_string()) return InvalidField(field, "must be text");
  const std::string& text = value.get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) return InvalidField(field, kNulProblem);
  return text;
}

absl::StatusOr<std::string> AsTextOrNumber(const Json& value, std::string_view field) {
  if (value.is_number_integer() || value.is_number_float()) return value.dump();
  return AsText(value, field);
}

absl::StatusOr<bool> AsBool(const Json& value, std::string_view field) {
  if (value.is_boolean()) return value.get<bool>();
  std::string word;
  if (value.is_number_integer()) {
    word = value.dump();
  } else if (value.is_string()) {
    word = AsciiLowered(Trimmed(value.get_ref<const std::string&>()));
  }
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return InvalidField(field, "must be true or false");
}

absl::StatusOr<double> AsNumber(const Json& value, std::string_view field) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    if (const auto number = ParseNumber(value.get_ref<const std::string&>())) return *number;
  }
  return InvalidField(field, "must be a number");
}

absl::StatusOr<int64_t> AsInteger(const Json& value, std::string_view field, int64_t min,
                                  int64_t max) {
  const std::string problem = fmt::format("must be a whole number from {} to {}", min, max);
  if (!value.is_number_integer()) return InvalidField(field, problem);
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return InvalidField(field, problem);
  }
  const int64_t number = value.get<int64_t>();
  if (number < min || number > max) return InvalidField(field, problem);
  return number;
}

absl::StatusOr<std::map<std::string, std::string>> AsTextMap(const Json& value,
                                                             std::string_view field) {
  if (!value.is_object()) return InvalidField(field, "must be an object of texts");
  std::map<std::string, std::string> map;
  for (const auto& [key, member] : value.items()) {
    if (key.find('\0') != std::string::npos) return InvalidField(field, kNulProblem);
    ASSIGN_OR_RETURN(map[key], AsText(member, fmt::format("{}.{:.64}", field, key)));
  }
  return map;
}

absl::StatusOr<std::vector<std::string>> AsTextList(const Json& value, std::string_view field) {
  if (!value.is_array()) return InvalidField(field, "must be a list of texts");
  std::vector<std::string> list;
  list.reserve(value.size());
  for (const Json& item : value) {
    ASSIGN_OR_RETURN(std::string text, AsText(item, fmt::format("{}[{}]", field, list.size())));
    list.push_back(std::move(text));
  }
  return list;
}

const Json* Params::Find(const char* name) const {
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

absl::StatusOr<std::string> Params::Text(const char* name) const {
  const Json* value = Find(name);
  if (value == nullptr || !value->is_string()) return WrongType(name, "text");
  return AsText(*value, name);
}

absl::StatusOr<std::string> Params::Text(const char* name, std::string_view absent) const {
  if (!Has(name)) return std::string(absent);
  return Text(name);
}

absl::StatusOr<std::string> Params::NonEmptyText(const char* name) const {
  ASSIGN_OR_RETURN(std::string text, Text(name));
  if (text.empty()) return InvalidField(name, "must not be empty");
  return text;
}

absl::StatusOr<std::vector<std::string>> Params::TextList(const char* name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::vector<std::string>();
  if (!value->is_array()) return WrongType(name, "a list of texts");
  return AsTextList(*value, name);
}

absl::StatusOr<std::map<std::string, std::string>> Params::TextMap(const char* name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::map<std::string, std::string>();
  if (!value->is_object()) return WrongType(name, "an object of texts");
  return AsTextMap(*value, name);
}

absl::StatusOr<std::optional<double>> Params::Number(const char* name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<double>();
  ASSIGN_OR_RETURN(const double number, AsNumber(*value, name));
  return std::optional<double>(number);
}

absl::StatusOr<std::optional<int64_t>> Params::Integer(const char* name, int64_t min,
                                                       int64_t max) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<int64_t>();
  ASSIGN_OR_RETURN(const int64_t number, AsInteger(*value, name, min, max));
  return std::optional<int64_t>(number);
}

absl::StatusOr<bool> Params::Bool(const char* name, bool absent) const {
  const Json* value = Find(name);
  if (value == nullptr) return absent;
  return AsBool(*value, name);
}

}  // namespace bridge::epp
