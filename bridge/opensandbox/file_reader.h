// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_reader.h — a file's bytes from a daemon, in constant memory: nobody reads,
// nothing flows. Owned by one task; loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class FileReader {
 public:
  // `path`: as the daemon is to be asked for it; `info`: what is there. Reads [offset,
  // offset+length), cut at the file's present size.
  FileReader(SandboxHandle sandbox, std::string path, FileInfo info, int64_t offset,
             std::optional<int64_t> length);

  const FileInfo& info() const { return info_; }

  // The next piece, at most kChunkBytes, swapped into *chunk. False: that was all.
  // Errors: OUTPUT_TRUNCATED (the file shrank), those of the daemon and the transport.
  Task<absl::StatusOr<bool>> Next(std::string* chunk);

  static constexpr size_t kChunkBytes = 256 * 1024;

 private:
  Task<absl::Status> Open();
  Task<absl::Status> FailureOf(HttpHead head);

  SandboxHandle sandbox_;
  const std::string path_;
  const FileInfo info_;
  int64_t offset_;
  int64_t left_;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace bridge
