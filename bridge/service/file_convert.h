// SPDX-License-Identifier: Apache-2.0
//
// service/file_convert.h — files: proto ↔ values, checked. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/file_watcher.h"
#include "sandbox/bridge/v1/files.pb.h"

namespace bridge {

inline constexpr int64_t kMaxSmallFileBytes = int64_t{1} << 20;

// A path as the API takes it, in its normal form. PATH_REJECTED naming the field.
absl::StatusOr<std::string> PathFromProto(std::string_view field, std::string_view path);
// The same, and not "/" itself: for what is written, moved or removed.
absl::StatusOr<std::string> ChangeablePathFromProto(std::string_view field, std::string_view path);

absl::StatusOr<FileWrite> WriteFromProto(std::string_view field,
                                         const sandbox::bridge::v1::WriteOptions& options);

// Account names or decimal numbers; may be empty.
absl::Status CheckOwner(std::string_view field, std::string_view owner);
absl::Status CheckMode(std::string_view field, uint32_t mode);
// Empty, or 64 hex digits.
absl::Status CheckSha256(std::string_view field, std::string_view digest);

void FileChangeToProto(FileChange change, sandbox::bridge::v1::WatchEvent* proto);
void FileInfoToProto(const FileInfo& info, sandbox::bridge::v1::FileInfo* proto);
sandbox::bridge::v1::FileType FileTypeToProto(FileType type);

}  // namespace bridge
