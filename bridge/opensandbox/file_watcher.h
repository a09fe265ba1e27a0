// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_watcher.h — changes below a directory, as our own daemon reports them
// (docs/execd-extras.md, GET /v1/watch). Owned by one task; loop thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

struct FileChange {
  enum class Kind {
    kReady,  // the watch is in place
    kCreated,
    kModified,
    kAttributes,
    kDeleted,
    kMoved,
    kOverflow,   // changes were lost
    kKeepalive,  // nothing happened for so long
  };
  Kind kind = Kind::kKeepalive;
  std::string path = {};              // UTF-8, possibly with escapes
  std::string path_bytes = {};        // exact, where it is not UTF-8
  std::string old_path = {};          // kMoved; as `path`
  std::optional<FileType> type = {};  // absent: unknown, or none
};

class FileWatcher {
 public:
  // Starts the exchange. `keepalive`: 1 s to 1 h.
  FileWatcher(SandboxHandle sandbox, const std::string& path, bool recursive,
              absl::Duration keepalive);

  // Errors: PATH_NOT_FOUND, NOT_A_DIRECTORY, PERMISSION_DENIED, QUOTA_EXCEEDED.
  Task<absl::Status> Begin();

  // The next changes, at least one. Errors: PATH_NOT_FOUND (the directory has gone), those of Begin
  // and of the transport: the watch is over.
  Task<absl::StatusOr<std::vector<FileChange>>> Next();

 private:
  absl::Status TakeLines(std::vector<FileChange>* changes);

  SandboxHandle sandbox_;
  Transfer transfer_;
  std::string buffer_;
  std::string chunk_;
  absl::Status end_;  // what to say once the changes before it were told
};

// One line of the answer. A failure is the watch's end.
absl::StatusOr<FileChange> ParseFileChange(std::string_view line);

}  // namespace bridge
