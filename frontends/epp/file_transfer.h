// SPDX-License-Identifier: Apache-2.0
//
// epp/file_transfer.h — files.read and files.write.
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

}  // namespace bridge::epp
