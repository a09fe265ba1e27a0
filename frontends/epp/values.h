// SPDX-License-Identifier: Apache-2.0
//
// epp/values.h — JSON values of others as C++ values: with names in every complaint.
//
// Hosts and users pass numbers as text, text as numbers and words for booleans; each reader says
// what it takes. Text never holds NUL, which no path, argument, environment or label can carry, and
// which stands for an unpaired surrogate as well (json_scan.h). All errors are INVALID_ARGUMENT
// with the field's name and never show the value, which may be a secret.
//
// Pure: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontends/epp/json.h"

namespace bridge::epp {

// A string without NUL.
absl::StatusOr<std::string> AsText(const Json& value, std::string_view field);
// Numbers in their shortest form and strings; nothing else.
absl::StatusOr<std::string> AsTextOrNumber(const Json& value, std::string_view field);
// true, false, 1, 0, and the words true/1/yes/on, false/0/no/off in any case.
absl::StatusOr<bool> AsBool(const Json& value, std::string_view field);
// A number, also as text, also NaN and ±Infinity.
absl::StatusOr<double> AsNumber(const Json& value, std::string_view field);
// A whole number within the bounds, no text, no 1.0, no true.
absl::StatusOr<int64_t> AsInteger(const Json& value, std::string_view field, int64_t min,
                                  int64_t max);
// {"k": "v"} with strings.
absl::StatusOr<std::map<std::string, std::string>> AsTextMap(const Json& value,
                                                             std::string_view field);
// ["a", "b"] with strings.
absl::StatusOr<std::vector<std::string>> AsTextList(const Json& value, std::string_view field);

// Members of an object that others sent. Absent and null are the same.
class Params {
 public:
  // `object` must be an object and outlive this.
  explicit Params(const Json& object) : object_(object) {}

  // Null when it is absent or null.
  const Json* Find(const char* name) const;
  bool Has(const char* name) const { return Find(name) != nullptr; }

  // A JSON type that is not the one asked for is INVALID_PARAMS: no user can cause it, the host's
  // program is wrong. What users can cause is INVALID_ARGUMENT.
  absl::StatusOr<std::string> Text(const char* name) const;  // required
  absl::StatusOr<std::string> Text(const char* name, std::string_view absent) const;
  absl::StatusOr<std::string> NonEmptyText(const char* name) const;
  // {} and [] when absent.
  absl::StatusOr<std::vector<std::string>> TextList(const char* name) const;
  absl::StatusOr<std::map<std::string, std::string>> TextMap(const char* name) const;
  absl::StatusOr<std::optional<double>> Number(const char* name) const;
  absl::StatusOr<std::optional<int64_t>> Integer(const char* name, int64_t min, int64_t max) const;
  absl::StatusOr<bool> Bool(const char* name, bool absent) const;

 private:
  const Json& object_;
};

}  // namespace bridge::epp
