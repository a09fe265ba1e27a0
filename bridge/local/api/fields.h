// SPDX-License-Identifier: Apache-2.0
//
// local/api/fields.h — takes typed fields out of a JSON object by the real server's schema rules
// (pydantic's lax mode): "60" and 60.0 and true are integers, 1 is no string, null is an absent
// optional field. What does not fit goes to ValidationErrors and reads as absent. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/local/api/failure.h"

namespace bridge::local::api {

enum class Presence { kOptional, kRequired };

struct StringRule {
  Presence presence = Presence::kOptional;
  size_t min_length = 0;
  size_t max_length = SIZE_MAX;
  bool (*matches)(std::string_view) = nullptr;
  std::string_view pattern = {};  // of `matches`, as the answer shows it
};

struct IntRule {
  Presence presence = Presence::kOptional;
  std::optional<int64_t> at_least;
  std::optional<int64_t> at_most;
};

class Fields {
 public:
  // A value that is no object is itself an error; then every field reads as absent, silently.
  // `value` and `errors` outlive this.
  Fields(const Json& value, Json loc, ValidationErrors& errors);

  bool is_object() const { return object_ != nullptr; }
  const Json& value() const { return value_; }
  const Json& loc() const { return loc_; }
  ValidationErrors& errors() { return errors_; }

  std::optional<std::string> String(std::string_view name, const StringRule& rule = {});
  std::optional<int64_t> Int(std::string_view name, const IntRule& rule = {});
  std::optional<bool> Bool(std::string_view name, Presence presence = Presence::kOptional);
  // Values must be strings. A null value is an error, or with `drop_nulls` left out.
  std::optional<std::map<std::string, std::string>> StringMap(std::string_view name,
                                                              bool drop_nulls = false);
  std::optional<std::vector<std::string>> StringList(std::string_view name, size_t min_items = 0,
                                                     Presence presence = Presence::kOptional);
  // The member as an object of its own fields; nothing when absent.
  std::optional<Fields> Object(std::string_view name, Presence presence = Presence::kOptional);
  // The elements of a list of objects; an element that is no object is reported.
  std::vector<Fields> Objects(std::string_view name);
  // A member of any object type.
  void AnyObject(std::string_view name, Presence presence);

  // Reports a rule about this object as a whole.
  void Reject(std::string_view message);

  // The member; null when absent, or null and optional. A missing required one is reported.
  const Json* Find(std::string_view name, Presence presence);
  Json LocOf(const Json& element) const;

 private:
  const Json& value_;
  const Json* object_ = nullptr;
  Json loc_;
  ValidationErrors& errors_;
};

// An integer by the lax rules; reports what is wrong with `value` at `loc`.
std::optional<int64_t> LaxInt(const Json& value, const IntRule& rule, const Json& loc,
                              ValidationErrors& errors);
std::optional<bool> LaxBool(const Json& value, const Json& loc, ValidationErrors& errors);

}  // namespace bridge::local::api
