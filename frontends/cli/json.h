// SPDX-License-Identifier: Apache-2.0
//
// cli/json.h — messages as JSON for --json, the same rules everywhere:
//   * keys are the field names of the .proto files; absent messages, optionals and oneof members
//   are
//     left out, other fields are always there
//   * enums are words without their prefix: "RUNNING"
//   * times are RFC 3339 strings, durations are seconds, 64-bit numbers are numbers
//   * bytes are a string under their own key when they are UTF-8, else base64 under "<key>_base64"
// Pure functions, any thread.
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace bridge::cli {

using Json = nlohmann::ordered_json;

Json ToJson(const google::protobuf::Message& message);

// Adds bytes to an object by the rule above.
void PutBytes(Json& object, std::string_view key, const std::string& bytes);

// For text that ought to be UTF-8 and might not be.
std::string TextOrEscaped(std::string_view text);

// One line with its line end.
std::string JsonLine(const Json& value);

}  // namespace bridge::cli
