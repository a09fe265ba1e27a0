// SPDX-License-Identifier: Apache-2.0
//
// local/api/json_body.h — the body of a request as the real server's framework reads it: the same
// inputs are refused, in the same words and at the same position (counted in characters).
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bridge/local/api/failure.h"

namespace bridge::local::api {

// Reads `body`. With a content type that is not JSON the value is the text itself, which no schema
// accepts. Returns what is wrong, or nothing and the value. An empty body is a missing one.
std::optional<Failure> ReadJsonBody(std::string_view body,
                                    std::optional<std::string_view> content_type, Json* value);

// The first fault in a JSON text, as Python's parser reports it.
struct JsonFault {
  std::string message;  // "Expecting value"
  size_t position = 0;  // in characters
};
struct JsonScan {
  std::optional<JsonFault> fault;
  bool has_nan = false;   // NaN or Infinity, which Python takes and JSON does not know
  bool too_deep = false;  // nested beyond what Python's stack allows
};
// `text` must be valid UTF-8.
JsonScan ScanJson(std::string_view text);

}  // namespace bridge::local::api
