// SPDX-License-Identifier: Apache-2.0
//
// epp/convert.h — small conversions into the bridge's messages that several methods share. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "frontends/epp/json.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "sandbox/bridge/v1/common.pb.h"

namespace bridge::epp {

google::protobuf::Duration ToProto(absl::Duration duration);

// Environment as the host passes it, of which only create's is checked there: numbers become text,
// true and false words, null is left out; the rest is INVALID_ARGUMENT.
absl::StatusOr<std::map<std::string, std::string>> EnvironmentOf(const Json* value,
                                                                 std::string_view field);
void SetEnv(const std::map<std::string, std::string>& env,
            google::protobuf::RepeatedPtrField<sandbox::bridge::v1::EnvVar>* target);

// "" is nobody, "1000" and "1000:1000" are ids, the rest is a name.
absl::Status SetUser(std::string_view text, std::string_view field,
                     sandbox::bridge::v1::User* user);

// 1..64, or "TERM" or "SIGTERM".
absl::StatusOr<int> SignalOf(const Json& value, std::string_view field);

// A number is the bits themselves (420 is 0644); text is octal ("644", "0644", "0o644").
absl::StatusOr<uint32_t> ModeOf(const Json& value, std::string_view field);

}  // namespace bridge::epp
