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
#include "bridge/opensandbox/alias_folder.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class FileReader {
 public:
  // Reads [offset, offset+length) of a file on our own daemon; links are followed. To its end where
  // that lies before; a file that does not know its size (/proc) is read until it ends.
  static Task<absl::StatusOr<std::unique_ptr<FileReader>>> OpenOwn(SandboxHandle sandbox,
                                                                   std::string path, int64_t offset,
                                                                   std::optional<int64_t> length);
  // The same on a stock daemon. `info`: what is at info.path, a regular file and no link. The
  // reader's info() has `shown_path`.
  static Task<absl::StatusOr<std::unique_ptr<FileReader>>> OpenStock(SandboxHandle sandbox,
                                                                     FileInfo info,
                                                                     std::string shown_path,
                                                                     int64_t offset,
                                                                     std::optional<int64_t> length);

  const FileInfo& info() const { return info_; }

  // The next piece, at most kChunkBytes, swapped into *chunk. False: that was all.
  // Errors: OUTPUT_TRUNCATED (the file shrank), those of the daemon and the transport.
  Task<absl::StatusOr<bool>> Next(std::string* chunk);

  static constexpr size_t kChunkBytes = 256 * 1024;

 private:
  explicit FileReader(SandboxHandle sandbox) : sandbox_(std::move(sandbox)) {}

  Task<absl::Status> BeginOwn(std::string path, int64_t offset, std::optional<int64_t> length);
  Task<absl::Status> BeginStock();
  void StartTransfer(const std::string& target, int64_t expected);
  Task<HttpResponse> ErrorAnswer(HttpHead head);
  Task<absl::Status> FailureOf(HttpHead head);
  Task<absl::StatusOr<HttpHead>> AwaitHead();
  Task<absl::Status> Explained(absl::Status failure);
  Task<absl::Status> CutShort(absl::Status status);

  SandboxHandle sandbox_;
  FileInfo info_;
  std::string place_;  // what the daemon is asked for
  std::unique_ptr<AliasFolder> alias_;
  int64_t offset_ = 0;
  std::optional<int64_t> left_;  // absent: until the answer ends
  bool whole_ = false;           // stock: the answer to a plain request is what is wanted
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace bridge
