// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_codec.h — execd's file routes: JSON ↔ values. Entries of lists are read by
// simdjson, since there may be a hundred thousand. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/opensandbox/file_types.h"

namespace bridge {

// One entry of a list: {"path","type","size","mode",...}. Older daemons have no type: then the
// entry is kOther and type_known is false. Errors: UPSTREAM_PROTOCOL.
absl::Status ParseFileInfo(std::string_view json, FileInfo* info);
// An entry of our own daemon (docs/execd-extras.md), which may be without a path.
absl::Status ParseOwnFileInfo(std::string_view json, FileInfo* info);

// The entry of `path` in the answer of GET /files/info, a map keyed by the paths as they were sent.
absl::StatusOr<FileInfo> ParseFileInfoOf(std::string_view json, const std::string& path);
absl::StatusOr<int64_t> ParseFileSize(std::string_view json, const std::string& path);

// {"/path":{"mode":755}} for POST /directories. Without a mode the daemon's own applies.
std::string MakeDirectoryJson(const std::string& path, std::optional<unsigned> mode);

// [{"src","dest"}] for POST /files/mv.
std::string MoveJson(const std::string& source, const std::string& destination);

// What our own daemon's routes are told: octal digits of a mode, a time with nanoseconds.
std::string OctalDigits(unsigned mode);
std::string TimeText(absl::Time time);

// The answer of POST /v1/file/move of our own daemon: something was replaced.
absl::StatusOr<bool> ParseFileMoved(std::string_view json);
// The answer of PUT /v1/file of our own daemon, which was told `path`.
absl::StatusOr<FileWritten> ParseFileWritten(std::string_view json, std::string_view path);

}  // namespace bridge
