// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/alias_folder.h — a FileAlias while it is needed: another path for what a stock
// daemon's routes cannot reach by its own (names with `$`, which they expand) or cannot tell right
// (files of /proc, whose size they believe). Removed by a background task when this is destroyed.
// Errors: those of a script; PATH_REJECTED where nothing in the sandbox is writable. Owned by one
// task; loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/file_script.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class AliasFolder {
 public:
  // A link to `path`, which need not be there.
  static Task<absl::StatusOr<std::unique_ptr<AliasFolder>>> Link(SandboxHandle sandbox,
                                                                 std::string path);
  // A copy of what `path` says when it is read. FILE_TOO_LARGE above 64 MiB.
  static Task<absl::StatusOr<std::unique_ptr<AliasFolder>>> Copy(SandboxHandle sandbox,
                                                                 std::string path);
  // A list of the entries below a directory (see ParseListRecord).
  static Task<absl::StatusOr<std::unique_ptr<AliasFolder>>> List(SandboxHandle sandbox,
                                                                 std::string path, int depth);
  ~AliasFolder();
  AliasFolder(const AliasFolder&) = delete;
  AliasFolder& operator=(const AliasFolder&) = delete;

  std::string path() const { return alias_.path(); }
  // Bytes of the copy or list.
  int64_t size() const { return size_; }

 private:
  explicit AliasFolder(SandboxHandle sandbox);
  // Runs the script that makes it; `what` says what it is for.
  Task<absl::Status> Make(std::string script, std::string what);

  SandboxHandle sandbox_;
  const FileAlias alias_;
  int64_t size_ = 0;
};

}  // namespace bridge
