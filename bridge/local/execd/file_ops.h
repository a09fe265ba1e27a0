// SPDX-License-Identifier: Apache-2.0
//
// local/execd/file_ops.h — what the file routes do to the file system, with execd's rules and in
// its words. Each function may block on the disk. Any thread.
//
// With an identity (`/v1/filesystem/{uid}/{gid}`) the calling thread takes on that user's rights on
// files for the length of the call (Linux keeps them per thread).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bridge/local/execd/api_error.h"
#include "bridge/local/execd/file_info.h"

namespace bridge::local::execd {

// A path of a request as the routes understand it; see paths.h. On failure *error is the reason.
std::string ResolvePath(std::string_view path, std::string* error);

// Owner and mode as requests give them: empty or 0 leaves alone.
struct Permission {
  std::string owner;  // names only
  std::string group;
  int64_t mode = 0;  // decimal digits
};
// Applies mode, then owner. An empty text is success; else the reason, in Go's words.
std::string ApplyPermission(const std::string& path, const Permission& permission);

// GET /files/info: the JSON map, keys as sent.
std::optional<ApiError> DescribeFiles(const std::vector<std::string>& paths, std::string* json);
std::optional<ApiError> ListDirectory(const std::string& path, int64_t depth,
                                      std::vector<FileInfo>* out);
std::optional<ApiError> SearchFiles(const std::string& path, const std::string& pattern,
                                    std::vector<FileInfo>* out);
std::optional<ApiError> MakeDirectories(const std::map<std::string, Permission>& directories);
std::optional<ApiError> RemoveFiles(const std::vector<std::string>& paths);
std::optional<ApiError> RemoveDirectories(const std::vector<std::string>& paths);
std::optional<ApiError> MoveFiles(const std::vector<std::pair<std::string, std::string>>& moves);
std::optional<ApiError> ChangePermissions(const std::map<std::string, Permission>& files);

struct Replacement {
  std::string before;
  std::string after;
};
// *counts: replacements by path as sent.
std::optional<ApiError> ReplaceText(const std::map<std::string, Replacement>& files,
                                    std::map<std::string, int64_t>* counts);

// Makes a directory and its parents, 0777 less the umask. An empty text is success.
std::string MakeAllDirectories(const std::string& path);

// Opens the target of an upload, parents made; -1 and *error otherwise.
int OpenUploadTarget(const std::string& sent_path, std::string* path, ApiError* error);

// The rights of another user on files, for this thread, until destroyed.
class AssumedFileIdentity {
 public:
  AssumedFileIdentity(uid_t uid, gid_t gid);
  ~AssumedFileIdentity();
  AssumedFileIdentity(const AssumedFileIdentity&) = delete;
  AssumedFileIdentity& operator=(const AssumedFileIdentity&) = delete;
  bool ok() const { return ok_; }

 private:
  bool ok_ = false;
  std::vector<gid_t> groups_;
};

}  // namespace bridge::local::execd
