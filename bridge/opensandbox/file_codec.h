// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_codec.h — execd's file answers: JSON → values. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bridge {

// The size of `path` in the answer of GET /files/info, a map keyed by the paths as they were sent.
// Errors: UPSTREAM_PROTOCOL.
absl::StatusOr<int64_t> ParseFileSize(std::string_view json, const std::string& path);

}  // namespace bridge
