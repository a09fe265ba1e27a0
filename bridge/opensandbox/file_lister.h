// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_lister.h — the entries below a directory as they arrive, in constant memory.
// Owned by one task; loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/json_array.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

inline constexpr int kAllLevels = 1'000'000;

class FileLister {
 public:
  // Starts the exchange; await Begin() first.
  FileLister(SandboxHandle sandbox, const std::string& path, int depth);

  // Errors: PATH_NOT_FOUND, NOT_A_DIRECTORY, PERMISSION_DENIED.
  Task<absl::Status> Begin();

  // The next entries, parents before children. Empty: that was all.
  Task<absl::StatusOr<std::vector<FileInfo>>> Next(size_t max_entries);

 private:
  SandboxHandle sandbox_;
  Transfer transfer_;
  JsonArraySplitter splitter_;
  std::string chunk_;
  bool ended_ = false;
};

}  // namespace bridge
