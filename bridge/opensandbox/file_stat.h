// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_stat.h — what is at a path of a sandbox that was found. Paths are literal.
// Errors: the path errors of errors.proto and those of a request to the daemon. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// lstat, or stat with `follow`; PATH_NOT_FOUND if nothing is there. info.path is `path`. The text
// of a link is there only where the daemon tells it unasked (see LinkTarget).
Task<absl::StatusOr<FileInfo>> StatFile(SandboxHandle sandbox, std::string path, bool follow);

// The text of a link; empty where it cannot be read.
Task<std::string> LinkTarget(SandboxHandle sandbox, std::string path);

// The path with its links resolved.
Task<absl::StatusOr<std::string>> ResolveLinks(SandboxHandle sandbox, std::string path);

// One of the scripts of file_script.h. `what`: "read a file". Its lines go to `lines` if given.
Task<absl::Status> RunFileScript(SandboxHandle sandbox, std::string script, std::string what,
                                 std::vector<std::string>* lines);

}  // namespace bridge
