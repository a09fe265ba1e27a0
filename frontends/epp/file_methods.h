// SPDX-License-Identifier: Apache-2.0
//
// epp/file_methods.h — files.*.
//
// A file is one line of at most 8 MiB: read and written whole up to about 6 MiB, and never cut.
// With `offset` or `length` a read yields at most 4 MiB of any file and says where the end is.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "frontends/epp/call.h"

namespace bridge::epp {

inline constexpr int64_t kMaxPartBytes = 4 * 1024 * 1024;

Task<void> ReadFile(Call& call);
Task<absl::StatusOr<Json>> WriteFile(Call& call);
Task<absl::StatusOr<Json>> ListFiles(Call& call);
Task<absl::StatusOr<Json>> StatFile(Call& call);
Task<absl::StatusOr<Json>> MakeDirectory(Call& call);
Task<absl::StatusOr<Json>> RemoveFile(Call& call);
Task<absl::StatusOr<Json>> MoveFile(Call& call);
Task<absl::StatusOr<Json>> SearchFiles(Call& call);
Task<absl::StatusOr<Json>> ChangeFileMode(Call& call);

// A number is the bits themselves (420 is 0644); text is octal ("644", "0644", "0o644").
absl::StatusOr<uint32_t> ModeOf(const Json& value, std::string_view field);

}  // namespace bridge::epp
