// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/file_change.h — `POST /v1/file/move` and `/v1/file/attributes`
// (docs/execd-extras.md): what a shell's tools leave a moment for between a look and an act. Any
// thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "bridge/local/execd/extra/failure.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd::extra {

struct FileMove {
  std::string source;
  std::string destination;
  bool overwrite = false;
  bool parents = false;
};

// A rename that replaces something only if it may, whatever happens meanwhile. `*replaced`: it did.
std::optional<Failure> MoveFile(const FileMove& request, bool* replaced);

// renameat2(RENAME_NOREPLACE) in steps that every file system knows: the errno, 0 for success.
// Whatever is at `to` when it takes its place makes it EEXIST (or ENOTEMPTY, ENOTDIR).
int RenameInSteps(const std::string& from, const std::string& to);

struct FileAttributes {
  std::string path;
  bool follow = false;  // a link at the path; else it is a failure
  std::optional<mode_t> mode;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<absl::Time> modified_at;
};

// *json describes what was changed.
std::optional<Failure> SetFileAttributes(const FileAttributes& request, std::string* json);

void AddFileChangeRoutes(http::Router& router);

}  // namespace bridge::local::execd::extra
