// SPDX-License-Identifier: Apache-2.0
//
// local/execd/go_json.h — JSON requests read as Go's encoding/json reads them, since that is what
// clients of execd see: the first value of the input counts and the rest is ignored, names of
// fields match without regard to case, the last of equal names wins, null leaves a field alone,
// bytes that are not UTF-8 become U+FFFD, and the error messages are Go's. A library that does this
// does not exist for C++; the common ones refuse input that execd takes. Pure, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bridge::local::execd {

struct JsonMember;

class JsonValue {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;  // a string's value, or a number as it was written
  std::vector<JsonValue> items;
  std::vector<JsonMember> members;  // in order, repeated names kept

  // "number", "object", …: the kind in Go's words.
  std::string_view KindName() const;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// Reads the first value of `input`. On failure the message is Go's ("unexpected EOF").
struct JsonParse {
  JsonValue value;
  size_t consumed = 0;  // bytes of `input` up to the end of the value
  std::string error;    // empty: it worked
};
JsonParse ParseGoJson(std::string_view input);

// Takes fields out of an object as Go fills a struct of the name `type`. The first failure sticks
// and everything after it is a no-op, so that a caller looks at error() once at the end.
class JsonFields {
 public:
  // `value` must outlive this object. A null value is an object without members; any other kind is
  // an error ("cannot unmarshal array into Go value of type <go_type>").
  JsonFields(const JsonValue& value, std::string_view type, std::string_view go_type);

  void String(std::string_view name, std::string* out);
  void Bool(std::string_view name, bool* out);
  void Int64(std::string_view name, int64_t* out, std::string_view go_type = "int64");
  void Uint32(std::string_view name, std::optional<uint32_t>* out);
  void StringMap(std::string_view name, std::map<std::string, std::string>* out);
  void StringList(std::string_view name, std::vector<std::string>* out);

  // The last member whose name matches, null members left out.
  const JsonValue* Find(std::string_view name) const;

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  const JsonValue* Expect(std::string_view name, JsonValue::Kind kind, std::string_view go_type);
  void Mismatch(std::string_view what, std::string_view name, std::string_view go_type);

  const JsonValue& value_;
  const std::string type_;
  std::string error_;
};

// A JSON number as an integer; nothing when it has a fraction, an exponent or does not fit.
std::optional<int64_t> JsonInteger(std::string_view number);

}  // namespace bridge::local::execd
