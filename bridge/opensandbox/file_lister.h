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
#include "bridge/opensandbox/alias_folder.h"
#include "bridge/opensandbox/file_reader.h"
#include "bridge/opensandbox/file_types.h"
#include "bridge/opensandbox/json_array.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

inline constexpr int kAllLevels = 1'000'000;

class FileLister {
 public:
  virtual ~FileLister() = default;

  // Await it first. Errors: PATH_NOT_FOUND, NOT_A_DIRECTORY, PERMISSION_DENIED.
  virtual Task<absl::Status> Begin() = 0;

  // The next entries, parents before children. Empty: that was all.
  virtual Task<absl::StatusOr<std::vector<FileInfo>>> Next(size_t max_entries) = 0;
};

// The answer of a daemon's list route, stock or own: a JSON array.
class RouteFileLister final : public FileLister {
 public:
  // Starts the exchange. `path`: a directory; our own daemon follows it if it is a link.
  RouteFileLister(SandboxHandle sandbox, const std::string& path, int depth);
  Task<absl::Status> Begin() override;
  Task<absl::StatusOr<std::vector<FileInfo>>> Next(size_t max_entries) override;
  // After Begin(): an older daemon, which has no such route.
  bool route_missing() const { return route_missing_; }

 private:
  absl::Status Take(std::string_view element, FileInfo* info) const;

  SandboxHandle sandbox_;
  const bool own_;
  Transfer transfer_;
  JsonArraySplitter splitter_;
  std::string chunk_;
  bool ended_ = false;
  bool route_missing_ = false;
};

// A stock daemon's tools, for a path that its route does not take literally: a list made by `find`.
class ScriptFileLister final : public FileLister {
 public:
  ScriptFileLister(SandboxHandle sandbox, std::string path, int depth)
      : sandbox_(std::move(sandbox)), path_(std::move(path)), depth_(depth) {}
  Task<absl::Status> Begin() override;
  Task<absl::StatusOr<std::vector<FileInfo>>> Next(size_t max_entries) override;

 private:
  SandboxHandle sandbox_;
  const std::string path_;
  const int depth_;
  std::unique_ptr<AliasFolder> alias_;
  std::unique_ptr<FileReader> reader_;
  std::string buffer_;
  bool ended_ = false;
};

// Shows the entries of another lister below another directory: those of a link's target below the
// link.
class RenamedFileLister final : public FileLister {
 public:
  RenamedFileLister(std::unique_ptr<FileLister> inner, std::string from, std::string to)
      : inner_(std::move(inner)), from_(from == "/" ? "" : std::move(from)), to_(std::move(to)) {}
  Task<absl::Status> Begin() override { return inner_->Begin(); }
  Task<absl::StatusOr<std::vector<FileInfo>>> Next(size_t max_entries) override;

 private:
  const std::unique_ptr<FileLister> inner_;
  const std::string from_;
  const std::string to_;
};

}  // namespace bridge
