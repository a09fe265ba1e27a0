// SPDX-License-Identifier: Apache-2.0
//
// base/error.h — failures of the product as absl::Status values.
//
// A failure is made in one place, MakeError(), from a word of the catalogue (errors.proto). The
// Status has the gRPC code that the catalogue gives the reason and carries the google.rpc details
// (ErrorInfo, RetryInfo, BadRequest) as payloads, so that converting it to a grpc::Status is
// copying. A message says what happened and, where one can, what to do about it, in the words of a
// stranger's world; it never holds a secret, the text of a command or the content of a file.
//
// Pure values: any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "sandbox/bridge/v1/errors.pb.h"

namespace bridge {

using sandbox::bridge::v1::ErrorReason;

inline constexpr std::string_view kErrorDomain = "sandbox.bridge.v1";

// What accompanies a reason. All parts are optional.
struct ErrorDetails {
  std::map<std::string, std::string> metadata = {};  // keys as documented in errors.proto
  std::string field = {};  // path of the offending field: "spec.env[2].name"
  std::optional<absl::Duration> retry_after = {};
};

absl::Status MakeError(ErrorReason reason, std::string_view message, ErrorDetails details = {});

// INVALID_ARGUMENT for `field`; the message becomes "<field>: <problem>".
absl::Status InvalidField(std::string_view field, std::string_view problem);

// The reason of a failure. A Status not made by MakeError maps by its code; OK is _UNSPECIFIED.
ErrorReason ReasonOf(const absl::Status& status);

// ErrorInfo's metadata, empty when there is none.
std::map<std::string, std::string> MetadataOf(const absl::Status& status);

// RetryInfo's delay, if any.
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

// The same failure with one more metadata entry. `status` must not be OK.
absl::Status WithMetadata(const absl::Status& status, std::string_view key, std::string_view value);

// The same failure with "<context>: " before its message. OK stays OK.
absl::Status WithContext(const absl::Status& status, std::string_view context);

// "SANDBOX_NOT_FOUND": the enum's name without its prefix.
std::string_view ReasonName(ErrorReason reason);

// The type URLs of the payloads, in the order in which they travel.
const std::vector<std::string>& DetailTypeUrls();

}  // namespace bridge
