// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_own.h — the routes by which our own daemon moves a file and sets its
// attributes: in one step, by literal paths. Errors: those of a request to the daemon, and the path
// errors of errors.proto. Loop thread only.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// True: something was replaced. Nothing: the daemon cannot, since the two places are on different
// file systems, or on one that has no way to do it in one step; nothing was changed.
Task<absl::StatusOr<std::optional<bool>>> MoveOwn(SandboxHandle sandbox, FileMove move);

// Answers what is there then, under the path as given.
Task<absl::StatusOr<FileInfo>> SetAttributesOwn(SandboxHandle sandbox, std::string path,
                                                AttributeChange change);

}  // namespace bridge
