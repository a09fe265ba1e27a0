// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_writer.h — a file's bytes to a daemon, in constant memory. Nothing is at the
// path before Finish() when the write is atomic; dropping a writer that has not finished leaves
// what was there and no temporary. Owned by one task; loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/base/sha256.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/alias_folder.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/multipart.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class FileWriter {
 public:
  virtual ~FileWriter() = default;
  // Returns when the bytes were taken; they may be reused then. Not OK: the write is over.
  virtual Task<absl::Status> Send(std::string_view bytes) = 0;
  // The end of the content: puts the file in its place.
  // Errors: PRECONDITION_FAILED (digest, size, existence), NO_SPACE, UNKNOWN_USER, ...
  virtual Task<absl::StatusOr<FileWritten>> Finish() = 0;
};

// PUT /v1/file of our own daemon: everything in one exchange.
class OwnFileWriter final : public FileWriter {
 public:
  OwnFileWriter(SandboxHandle sandbox, FileWrite write);
  Task<absl::Status> Send(std::string_view bytes) override;
  Task<absl::StatusOr<FileWritten>> Finish() override;

 private:
  Task<absl::Status> Refusal();

  SandboxHandle sandbox_;
  const FileWrite write_;
  Transfer transfer_;
};

// Where an upload goes, in a form that a stock daemon's route takes literally.
struct UploadPlace {
  std::string path;
  std::unique_ptr<AliasFolder> alias = nullptr;  // that `path` leads through, if any
};

// A stock daemon: an upload beside the target, then a rename by its shell.
class StockFileWriter final : public FileWriter {
 public:
  // `target`: the path with links resolved. `keep`: what is there now. `temporary` empty: the write
  // is not atomic and goes straight to the target.
  StockFileWriter(SandboxHandle sandbox, FileWrite write, std::string target,
                  std::optional<FileInfo> keep, std::string temporary, UploadPlace place);
  ~StockFileWriter() override;
  // Before the first byte. `missing`: the directory that the target is to be in is to be made; when
  // nothing is written it goes again. `reserve`: nobody else is ever to read the temporary.
  Task<absl::Status> Prepare(std::string directory, bool missing, bool reserve);
  Task<absl::Status> Send(std::string_view bytes) override;
  Task<absl::StatusOr<FileWritten>> Finish() override;

 private:
  // What takes away what is there of a write that came to nothing; empty: nothing is.
  std::string CleanUpScript() const;
  Task<void> RemoveParents();
  Task<absl::Status> SendAll(std::string_view bytes);
  Task<absl::Status> UploadResult();
  Task<absl::Status> Commit();
  absl::Status CheckContent(const std::string& digest) const;

  SandboxHandle sandbox_;
  const FileWrite write_;
  const std::string target_;
  const std::optional<FileInfo> keep_;
  const std::string temporary_;
  const UploadPlace place_;  // of the temporary, or of the target
  const MultipartUpload upload_;
  Transfer transfer_;
  Sha256 digest_;
  int64_t size_ = 0;
  bool begun_ = false;
  bool settled_ = false;      // nothing is left to be removed
  std::string directory_;     // that the target is to be in
  std::string made_parents_;  // what of it was made, as MakeParentsScript says
};

// The bytes were not what their sender said. Pure.
absl::Status DigestMismatch();
absl::Status SizeMismatch(int64_t expected, int64_t actual);

}  // namespace bridge
