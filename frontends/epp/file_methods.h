// SPDX-License-Identifier: Apache-2.0
//
// epp/file_methods.h — files.* but for reading and writing (file_transfer.h).
#pragma once

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "frontends/epp/call.h"

namespace bridge::epp {

// A listing is one line of at most 8 MiB, and an error when it does not fit: it is never cut.
Task<void> ListFiles(Call& call);
Task<void> SearchFiles(Call& call);
Task<absl::StatusOr<Json>> StatFile(Call& call);
Task<absl::StatusOr<Json>> MakeDirectory(Call& call);
Task<absl::StatusOr<Json>> RemoveFile(Call& call);
Task<absl::StatusOr<Json>> MoveFile(Call& call);
Task<absl::StatusOr<Json>> ChangeFileMode(Call& call);

}  // namespace bridge::epp
