// SPDX-License-Identifier: Apache-2.0
//
// service/validate.h — checks of single request fields that all services share.
//
// Every check takes the field's path as the caller wrote it ("spec.env[2].name") and fails with
// INVALID_ARGUMENT naming it; paths fail with PATH_REJECTED (the same gRPC code). A check that also
// converts returns the value. Nothing here echoes a value that may hold a secret or control
// characters. Pure functions: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "google/protobuf/timestamp.pb.h"
#include "sandbox/bridge/v1/common.pb.h"

namespace bridge {

inline constexpr size_t kMaxIdBytes = 253;     // a Kubernetes name
inline constexpr size_t kMaxPathBytes = 4096;  // Linux' PATH_MAX
inline constexpr size_t kMaxEnvVars = 1000;
inline constexpr int kDefaultPageSize = 50;
inline constexpr int kMaxPageSize = 200;

// "spec.env" [2] "name" → "spec.env[2].name"; an empty leaf gives "spec.env[2]".
std::string ElementField(std::string_view list, size_t index, std::string_view leaf = {});
// "spec.metadata" and a key of the map → `spec.metadata["key"]`, escaped and cut at 64 bytes.
std::string KeyField(std::string_view map, std::string_view key);

// An id that the upstream made: 1..253 of [A-Za-z0-9._-], beginning with a letter or digit, so that
// it is one segment of a URL and never "..". For sandboxes, snapshots, templates, execs.
absl::Status CheckId(std::string_view field, std::string_view id);
// As above.
absl::Status CheckSandboxId(std::string_view id, std::string_view field = "sandbox_id");
// expected_incarnation: may be empty; else at most 128 printable ASCII characters.
absl::Status CheckIncarnation(std::string_view text,
                              std::string_view field = "expected_incarnation");

// Well-formed, and between `min` and `max` (inclusive).
absl::StatusOr<absl::Duration> CheckDuration(std::string_view field,
                                             const google::protobuf::Duration& value,
                                             absl::Duration min, absl::Duration max);
// Well-formed by the rules of google.protobuf.Timestamp (years 1 to 9999).
absl::StatusOr<absl::Time> CheckTimestamp(std::string_view field,
                                          const google::protobuf::Timestamp& value);

// A path inside a sandbox: absolute, literal, at most 4,096 bytes, without NUL. PATH_REJECTED.
absl::Status CheckPath(std::string_view field, std::string_view path);

// No NUL and at most `max_bytes`; may be empty.
absl::Status CheckText(std::string_view field, std::string_view text, size_t max_bytes);
// As CheckText, and no control characters at all: for what ends up in headers, labels and logs.
absl::Status CheckPlainText(std::string_view field, std::string_view text, size_t max_bytes);

// Names by [A-Za-z_][A-Za-z0-9_]*, none twice, values without NUL, at most kMaxEnvVars.
absl::Status CheckEnv(std::string_view field,
                      const google::protobuf::RepeatedPtrField<sandbox::bridge::v1::EnvVar>& env);

// Exactly one of name and ids; a name of at most 256 bytes without blanks, ':' or '/'; ids below
// 4294967295, which means "unchanged" to the kernel.
absl::Status CheckUser(std::string_view field, const sandbox::bridge::v1::User& user);
absl::Status CheckUserIds(std::string_view field, const sandbox::bridge::v1::User::Ids& ids);

// Exactly one of number and name → the number, 1..64.
absl::StatusOr<int> CheckSignal(std::string_view field, const sandbox::bridge::v1::Signal& signal);

// 1..65535.
absl::Status CheckPort(std::string_view field, int64_t port);

// 0 → the default, else 1..200.
absl::StatusOr<int> CheckPageSize(std::string_view field, int64_t size);

// proto3 enums are open: a value that this build has no name for is refused, not ignored.
//   CheckEnum("states[1]", value, SandboxState_IsValid(value))
absl::Status CheckEnum(std::string_view field, int value, bool known);

}  // namespace bridge
