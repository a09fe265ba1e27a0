// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/request.h — requests read strictly: what is unknown, given twice or of the wrong type
// is an error that names the field. The first failure sticks; later calls are no-ops, so that a
// caller looks once at the end. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/local/execd/extra/failure.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/http/types.h"

namespace bridge::local::execd::extra {

// The members of a JSON object.
class StrictObject {
 public:
  // `body` must be one object and nothing else, in UTF-8.
  explicit StrictObject(std::string_view body);

  void String(std::string_view name, std::optional<std::string>* out);
  void Bool(std::string_view name, bool* out);
  void Integer(std::string_view name, int64_t least, int64_t most, std::optional<int64_t>* out);
  void StringList(std::string_view name, std::vector<std::string>* out);
  void StringMap(std::string_view name, std::map<std::string, std::string>* out);
  // A string or a number, as text.
  void StringOrInteger(std::string_view name, std::optional<std::string>* out);
  void Fail(std::string_view field, std::string_view problem);

  // After all fields were asked for: the first failure, or that of a member nobody asked for.
  std::optional<Failure> Finish();

 private:
  const JsonValue* Take(std::string_view name, JsonValue::Kind kind);

  JsonValue value_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Failure> failure_;
};

// The parameters of a query.
class StrictQuery {
 public:
  // `request` outlives this object.
  explicit StrictQuery(const http::Request& request) : request_(request) {}

  void String(std::string_view name, std::optional<std::string>* out);
  void Integer(std::string_view name, int64_t least, int64_t most, std::optional<int64_t>* out);
  void Flag(std::string_view name, bool* out);  // "0" or "1"
  // Required, absolute, without NUL.
  void Path(std::string_view name, std::string* out);
  void Fail(std::string_view field, std::string_view problem);

  std::optional<Failure> Finish();

 private:
  const http::Request& request_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Failure> failure_;
};

// A signal by name ("TERM", "SIGTERM") or number (also as text), 1..64, or 0 if allowed.
std::optional<int> ParseSignal(std::string_view text, bool zero_allowed);

}  // namespace bridge::local::execd::extra
