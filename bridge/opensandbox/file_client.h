// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_client.h — files of sandboxes: describe, change, and the ways into and out of
// them. Paths are absolute, literal and without "." and ".." (see NormalPath). Errors of everything
// here: those of FindSandbox and of a request to the daemon, and the path errors of errors.proto.
// One object per event loop; loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/file_lister.h"
#include "bridge/opensandbox/file_reader.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/file_watcher.h"
#include "bridge/opensandbox/file_writer.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// "/a/./b//../c/" → "/a/c". Resolving ".." as text is the API's rule.
std::string NormalPath(std::string_view path);

struct DirectoryMake {
  std::optional<unsigned> mode = {};
  std::string owner = {};
  std::string group = {};
  bool parents = false;
};

class FileClient {
 public:
  // Both outlive this.
  FileClient(DaemonClient& client, TaskScope& background)
      : client_(client), background_(background) {}

  Task<absl::StatusOr<FileInfo>> Stat(CallContext context, SandboxTarget target, std::string path,
                                      bool follow_symlink);

  // depth: levels below `path`, or kAllLevels. A link at `path` is followed; the entries' paths
  // begin with `path` all the same.
  Task<absl::StatusOr<std::unique_ptr<FileLister>>> List(CallContext context, SandboxTarget target,
                                                         std::string path, int depth);

  // The file's description is reader->info(). `length` absent: to the end.
  Task<absl::StatusOr<std::unique_ptr<FileReader>>> Read(CallContext context, SandboxTarget target,
                                                         std::string path, int64_t offset,
                                                         std::optional<int64_t> length);

  // Checks what can be checked before the first byte.
  Task<absl::StatusOr<std::unique_ptr<FileWriter>>> Write(CallContext context, SandboxTarget target,
                                                          FileWrite write);

  // Changes from now on. UNSUPPORTED_FEATURE on a stock daemon; else as FileWatcher::Begin.
  Task<absl::StatusOr<std::unique_ptr<FileWatcher>>> Watch(CallContext context,
                                                           SandboxTarget target, std::string path,
                                                           bool recursive,
                                                           absl::Duration keepalive);

  // True: it was made; false: it was there.
  Task<absl::StatusOr<bool>> MakeDirectory(CallContext context, SandboxTarget target,
                                           std::string path, DirectoryMake make);
  Task<absl::Status> Remove(CallContext context, SandboxTarget target, std::string path,
                            bool recursive);
  // True: something was replaced.
  Task<absl::StatusOr<bool>> Move(CallContext context, SandboxTarget target, FileMove move);
  Task<absl::StatusOr<FileInfo>> SetAttributes(CallContext context, SandboxTarget target,
                                               std::string path, AttributeChange change);

 private:
  Task<absl::StatusOr<SandboxHandle>> Find(CallContext context, SandboxTarget target) {
    return FindSandbox(client_, background_, std::move(context), std::move(target));
  }

  DaemonClient& client_;
  TaskScope& background_;
};

}  // namespace bridge
