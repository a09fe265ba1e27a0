// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/fields.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "bridge/local/http/types.h"

namespace bridge::local::api {
namespace {

size_t Characters(std::string_view text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::string_view Stripped(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> ParseInt(std::string_view text) {
  text = Stripped(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The number itself, without its bounds.
std::optional<int64_t> RawInt(const Json& value, const Json& loc, ValidationErrors& errors) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return INT64_MAX;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == std::floor(number) && std::abs(number) < 9e18) {
      return static_cast<int64_t>(number);
    }
    errors.Add("int_from_float", loc,
               "Input should be a valid integer, got a number with a fractional part", value);
    return std::nullopt;
  }
  if (value.is_string()) {
    if (const std::optional<int64_t> number = ParseInt(value.get_ref<const std::string&>())) {
      return number;
    }
    errors.Add("int_parsing", loc,
               "Input should be a valid integer, unable to parse string as an integer", value);
    return std::nullopt;
  }
  errors.Add("int_type", loc, "Input should be a valid integer", value);
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> LaxInt(const Json& value, const IntRule& rule, const Json& loc,
                              ValidationErrors& errors) {
  const std::optional<int64_t> number = RawInt(value, loc, errors);
  if (!number) return std::nullopt;
  if (rule.at_least && *number < *rule.at_least) {
    errors.Add("greater_than_equal", loc,
               "Input should be greater than or equal to " + std::to_string(*rule.at_least), value,
               {{"ge", *rule.at_least}});
    return std::nullopt;
  }
  if (rule.at_most && *number > *rule.at_most) {
    errors.Add("less_than_equal", loc,
               "Input should be less than or equal to " + std::to_string(*rule.at_most), value,
               {{"le", *rule.at_most}});
    return std::nullopt;
  }
  return number;
}

std::optional<bool> LaxBool(const Json& value, const Json& loc, ValidationErrors& errors) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number() && (value == 0 || value == 1)) return value == 1;
  if (value.is_string()) {
    const std::string word = http::AsciiLower(value.get_ref<const std::string&>());
    for (const char* yes : {"1", "true", "t", "yes", "y", "on"}) {
      if (word == yes) return true;
    }
    for (const char* no : {"0", "false", "f", "no", "n", "off"}) {
      if (word == no) return false;
    }
  }
  if (value.is_string() || value.is_number()) {
    errors.Add("bool_parsing", loc, "Input should be a valid boolean, unable to interpret input",
               value);
  } else {
    errors.Add("bool_type", loc, "Input should be a valid boolean", value);
  }
  return std::nullopt;
}

Fields::Fields(const Json& value, Json loc, ValidationErrors& errors)
    : value_(value), loc_(std::move(loc)), errors_(errors) {
  if (value.is_object()) {
    object_ = &value;
    return;
  }
  errors_.Add("model_attributes_type", loc_,
              "Input should be a valid dictionary or object to extract fields from", value);
}

Json Fields::LocOf(const Json& element) const {
  Json loc = loc_;
  loc.push_back(element);
  return loc;
}

const Json* Fields::Find(std::string_view name, Presence presence) {
  if (object_ == nullptr) return nullptr;
  const auto it = object_->find(std::string(name));
  if (it == object_->end()) {
    if (presence == Presence::kRequired) {
      errors_.Add("missing", LocOf(name), "Field required", value_);
    }
    return nullptr;
  }
  if (it->is_null() && presence == Presence::kOptional) return nullptr;
  return &*it;
}

std::optional<std::string> Fields::String(std::string_view name, const StringRule& rule) {
  const Json* found = Find(name, rule.presence);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) {
    errors_.Add("string_type", LocOf(name), "Input should be a valid string", *found);
    return std::nullopt;
  }
  const auto& text = found->get_ref<const std::string&>();
  const size_t length = Characters(text);
  const auto plural = [](size_t n) {
    return std::to_string(n) + (n == 1 ? " character" : " characters");
  };
  if (length < rule.min_length) {
    errors_.Add("string_too_short", LocOf(name),
                "String should have at least " + plural(rule.min_length), text,
                {{"min_length", rule.min_length}});
    return std::nullopt;
  }
  if (length > rule.max_length) {
    errors_.Add("string_too_long", LocOf(name),
                "String should have at most " + plural(rule.max_length), text,
                {{"max_length", rule.max_length}});
    return std::nullopt;
  }
  if (rule.matches != nullptr && !rule.matches(text)) {
    errors_.Add("string_pattern_mismatch", LocOf(name),
                "String should match pattern '" + std::string(rule.pattern) + "'", text,
                {{"pattern", rule.pattern}});
    return std::nullopt;
  }
  return text;
}

std::optional<int64_t> Fields::Int(std::string_view name, const IntRule& rule) {
  const Json* found = Find(name, rule.presence);
  if (found == nullptr) return std::nullopt;
  return LaxInt(*found, rule, LocOf(name), errors_);
}

std::optional<bool> Fields::Bool(std::string_view name, Presence presence) {
  const Json* found = Find(name, presence);
  if (found == nullptr) return std::nullopt;
  return LaxBool(*found, LocOf(name), errors_);
}

std::optional<std::map<std::string, std::string>> Fields::StringMap(std::string_view name,
                                                                    bool drop_nulls) {
  const Json* found = Find(name, Presence::kOptional);
  if (found == nullptr) return std::nullopt;
  const Json loc = LocOf(name);
  if (!found->is_object()) {
    errors_.Add("dict_type", loc, "Input should be a valid dictionary", *found);
    return std::nullopt;
  }
  std::map<std::string, std::string> map;
  for (const auto& [key, item] : found->items()) {
    if (item.is_null() && drop_nulls) continue;
    if (!item.is_string()) {
      Json at = loc;
      at.push_back(key);
      errors_.Add("string_type", at, "Input should be a valid string", item);
      continue;
    }
    map[key] = item.get<std::string>();
  }
  return map;
}

std::optional<std::vector<std::string>> Fields::StringList(std::string_view name, size_t min_items,
                                                           Presence presence) {
  const Json* found = Find(name, presence);
  if (found == nullptr) return std::nullopt;
  const Json loc = LocOf(name);
  if (!found->is_array()) {
    errors_.Add("list_type", loc, "Input should be a valid list", *found);
    return std::nullopt;
  }
  if (found->size() < min_items) {
    errors_.Add(
        "too_short", loc,
        "List should have at least " + std::to_string(min_items) +
            (min_items == 1 ? " item" : " items") + " after validation, not " +
            std::to_string(found->size()),
        *found,
        {{"field_type", "List"}, {"min_length", min_items}, {"actual_length", found->size()}});
    return std::nullopt;
  }
  std::vector<std::string> list;
  for (size_t i = 0; i < found->size(); ++i) {
    if (!(*found)[i].is_string()) {
      Json at = loc;
      at.push_back(i);
      errors_.Add("string_type", at, "Input should be a valid string", (*found)[i]);
      continue;
    }
    list.push_back((*found)[i].get<std::string>());
  }
  return list;
}

std::optional<Fields> Fields::Object(std::string_view name, Presence presence) {
  const Json* found = Find(name, presence);
  if (found == nullptr) return std::nullopt;
  return Fields(*found, LocOf(name), errors_);
}

std::vector<Fields> Fields::Objects(std::string_view name) {
  std::vector<Fields> objects;
  const Json* found = Find(name, Presence::kOptional);
  if (found == nullptr) return objects;
  const Json loc = LocOf(name);
  if (!found->is_array()) {
    errors_.Add("list_type", loc, "Input should be a valid list", *found);
    return objects;
  }
  for (size_t i = 0; i < found->size(); ++i) {
    Json at = loc;
    at.push_back(i);
    objects.emplace_back((*found)[i], std::move(at), errors_);
  }
  return objects;
}

void Fields::AnyObject(std::string_view name, Presence presence) {
  const Json* found = Find(name, presence);
  if (found == nullptr || found->is_object()) return;
  errors_.Add("dict_type", LocOf(name), "Input should be a valid dictionary", *found);
}

void Fields::Reject(std::string_view message) {
  errors_.Add("value_error", loc_, "Value error, " + std::string(message), value_,
              {{"error", Json::object()}});
}

}  // namespace bridge::local::api
