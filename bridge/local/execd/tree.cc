// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/tree.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "bridge/local/execd/paths.h"

namespace bridge::local::execd {
namespace {

// Sorted; the errno on failure, of opendir or of readdir.
std::optional<WalkFailure> ReadNames(const std::string& path, std::vector<std::string>* names) {
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return WalkFailure{"open", path, errno};
  errno = 0;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
  }
  const int error = errno;
  closedir(directory);
  if (error != 0) return WalkFailure{"read", path, error};
  std::sort(names->begin(), names->end());
  return std::nullopt;
}

}  // namespace

std::vector<std::string> MissingDirectories(const std::string& path) {
  std::vector<std::string> missing;
  struct stat info;
  for (std::string at = path; stat(at.c_str(), &info) != 0;) {
    missing.push_back(at);
    std::string parent = DirName(at);
    if (parent == at || parent == ".") break;
    at = std::move(parent);
  }
  std::reverse(missing.begin(), missing.end());
  return missing;
}

std::optional<WalkFailure> TreeWalk::Enter(const std::string& directory) {
  if (static_cast<int64_t>(levels_.size()) >= depth_) return std::nullopt;
  std::vector<std::string> names;
  if (auto failure = ReadNames(directory, &names)) return failure;
  levels_.push_back({directory, std::move(names)});
  return std::nullopt;
}

TreeWalk::Step TreeWalk::Next(FileInfo* entry, WalkFailure* failure) {
  if (!below_.empty()) {
    if (auto failed = Enter(std::exchange(below_, ""))) {
      *failure = *std::move(failed);
      return Step::kFailed;
    }
  }
  while (!levels_.empty() && levels_.back().next == levels_.back().names.size()) levels_.pop_back();
  if (levels_.empty()) return Step::kEnd;
  Level& level = levels_.back();
  const std::string path =
      (level.directory == "/" ? "" : level.directory) + "/" + level.names[level.next++];
  if (const int error = ReadFileInfo(path, entry); error != 0) {
    *failure = {"lstat", path, error};
    return Step::kFailed;
  }
  if (S_ISDIR(entry->stat.st_mode)) below_ = path;
  return Step::kEntry;
}

}  // namespace bridge::local::execd
