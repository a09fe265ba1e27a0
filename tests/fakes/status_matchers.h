// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/status_matchers.h — gmock matchers for absl::Status and StatusOr with the catalogue's
// details.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/base/error.h"
#include "google/rpc/error_details.pb.h"

namespace bridge::testing_status {

inline absl::Status Of(const absl::Status& status) { return status; }
template <class T>
absl::Status Of(const absl::StatusOr<T>& result) {
  return result.status();
}

// The field that BadRequest names; "" when there is none.
inline std::string FieldOf(const absl::Status& status) {
  google::rpc::BadRequest bad;
  const auto payload =
      status.GetPayload(absl::string_view(DetailTypeUrls()[2].data(), DetailTypeUrls()[2].size()));
  if (!payload.has_value() || !bad.ParseFromString(std::string(*payload))) return "";
  return bad.field_violations_size() == 1 ? bad.field_violations(0).field() : "";
}

}  // namespace bridge::testing_status

namespace bridge {

// `reason` is a word of the catalogue: "SANDBOX_NOT_FOUND".
MATCHER_P(HasReason, reason, "") {
  const absl::Status status = testing_status::Of(arg);
  *result_listener << status.ToString();
  return !status.ok() && ReasonName(ReasonOf(status)) == reason;
}

MATCHER_P2(HasDetail, key, value, "") {
  const auto metadata = MetadataOf(testing_status::Of(arg));
  const auto it = metadata.find(key);
  *result_listener << (it == metadata.end() ? "no such key" : it->second);
  return it != metadata.end() && it->second == value;
}

MATCHER_P(HasMessage, text, "") {
  const std::string message(testing_status::Of(arg).message());
  *result_listener << message;
  return message.find(text) != std::string::npos;
}

// INVALID_ARGUMENT for the field.
MATCHER_P(RejectsField, field, "") {
  const absl::Status status = testing_status::Of(arg);
  *result_listener << status.ToString();
  return status.code() == absl::StatusCode::kInvalidArgument &&
         testing_status::FieldOf(status) == field;
}

MATCHER(IsOk, "") {
  *result_listener << testing_status::Of(arg).ToString();
  return testing_status::Of(arg).ok();
}

}  // namespace bridge
