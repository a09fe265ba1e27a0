// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/file_ops.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "bridge/local/execd/environment.h"
#include "bridge/local/execd/glob.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/paths.h"
#include "bridge/local/execd/tree.h"

namespace bridge::local::execd {
namespace {

ApiError NotFound(const std::string& message) {
  return {404, kFileNotFound, "file not found. " + message};
}
ApiError Failed(const std::string& message) { return {500, kRuntimeError, message}; }
// 404 for a missing file, 500 for the rest.
ApiError AccessFailed(int error, const std::string& message) {
  if (error == ENOENT) return NotFound(message);
  return Failed("error accessing file: " + message);
}

// Entries below `path`, each followed by what is below it, down to `depth` levels.
std::optional<ApiError> Walk(const std::string& path, int64_t depth, std::vector<FileInfo>* out) {
  TreeWalk walk(depth);
  std::optional<WalkFailure> unopened = walk.Open(path);
  WalkFailure failure = unopened.value_or(WalkFailure());
  FileInfo info;
  TreeWalk::Step step = unopened ? TreeWalk::Step::kFailed : walk.Next(&info, &failure);
  for (; step == TreeWalk::Step::kEntry; step = walk.Next(&info, &failure)) {
    out->push_back(std::move(info));
  }
  if (step == TreeWalk::Step::kEnd) return std::nullopt;
  const std::string words = GoPathError(failure.operation, failure.path, failure.error);
  if (failure.operation == "open") return AccessFailed(failure.error, words);
  return Failed("error accessing file: " + words);
}

}  // namespace

std::string ResolvePath(std::string_view path, std::string* error) {
  const EnvMap env = OwnEnvironment();
  ExpandedPath expanded = ExpandPath(path, [&](std::string_view name) {
    const auto it = env.find(std::string(name));
    return it == env.end() ? std::nullopt : std::optional<std::string>(it->second);
  });
  *error = std::move(expanded.error);
  return std::move(expanded.path);
}

std::string ApplyPermission(const std::string& path, const Permission& permission) {
  if (permission.mode != 0) {
    mode_t mode = 0;
    if (!ModeFromDigits(permission.mode, &mode)) {
      return "strconv.ParseUint: parsing " + GoQuote(std::to_string(permission.mode)) +
             ": invalid syntax";
    }
    if (chmod(path.c_str(), mode) != 0) return GoPathError("chmod", path, errno);
  }
  if (permission.owner.empty() && permission.group.empty()) return "";
  const UserDatabase users = UserDatabase::Read();
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  if (!permission.owner.empty()) {
    const User* user = users.FindUser(permission.owner);
    if (user == nullptr) {
      return "failed to lookup user " + permission.owner + ": user: unknown user " +
             permission.owner;
    }
    uid = user->uid;
  }
  if (!permission.group.empty()) {
    const auto group = users.FindGroup(permission.group);
    if (!group) {
      return "failed to lookup group " + permission.group + ": group: unknown group " +
             permission.group;
    }
    gid = *group;
  }
  if (chown(path.c_str(), uid, gid) != 0) return GoPathError("chown", path, errno);
  return "";
}

std::optional<ApiError> DescribeFiles(const std::vector<std::string>& paths, std::string* json) {
  const UserDatabase users = UserDatabase::Read();
  std::map<std::string, FileInfo> found;  // sorted, as Go writes maps
  for (const std::string& sent : paths) {
    std::string error;
    const std::string path = ResolvePath(sent, &error);
    if (!error.empty()) return Failed("error accessing file: invalid path " + sent + ": " + error);
    FileInfo info;
    const int failure = ReadFileInfo(path, &info);
    if (failure == ENOENT || failure == ENOTDIR) {
      return NotFound("file not found: " + path + ": " + GoPathError("lstat", path, failure));
    }
    if (failure != 0) return Failed("error accessing file: " + GoPathError("lstat", path, failure));
    found[sent] = std::move(info);
  }
  *json = "{";
  for (const auto& [sent, info] : found) {
    if (json->size() > 1) *json += ',';
    AppendGoJsonString(*json, sent);
    *json += ':';
    AppendFileInfoJson(*json, info, users);
  }
  *json += '}';
  return std::nullopt;
}

std::optional<ApiError> ListDirectory(const std::string& sent, int64_t depth,
                                      std::vector<FileInfo>* out) {
  std::string error;
  const std::string path = ResolvePath(sent, &error);
  if (!error.empty()) return Failed("error accessing file: " + error);
  FileInfo root;
  if (const int failure = ReadFileInfo(path, &root); failure != 0) {
    return AccessFailed(failure, GoPathError("lstat", path, failure));
  }
  if (S_ISLNK(root.stat.st_mode)) {
    return ApiError{400, kInvalidBody, "path is a symbolic link, refusing to traverse: " + path};
  }
  if (!S_ISDIR(root.stat.st_mode)) {
    return ApiError{400, kInvalidBody, "path is not a directory: " + path};
  }
  return Walk(path, depth, out);
}

std::optional<ApiError> SearchFiles(const std::string& sent, const std::string& pattern,
                                    std::vector<FileInfo>* out) {
  std::string error;
  const std::string path = ResolvePath(sent, &error);
  if (!error.empty()) return Failed("error accessing file: " + error);
  struct stat followed;
  if (stat(path.c_str(), &followed) != 0) {
    const int failure = errno;
    return AccessFailed(failure, GoPathError("stat", path, failure));
  }
  if (!IsGlob(pattern)) {
    return Failed("error searching files. invalid pattern " + pattern +
                  ": syntax error in pattern");
  }
  std::vector<FileInfo> all(1);
  if (const int failure = ReadFileInfo(path, &all[0]); failure != 0) {
    return AccessFailed(failure, GoPathError("lstat", path, failure));
  }
  if (S_ISDIR(all[0].stat.st_mode)) {
    if (auto failure = Walk(path, INT64_MAX, &all)) return failure;
  }
  for (FileInfo& info : all) {
    if (S_ISDIR(info.stat.st_mode)) continue;
    if (MatchGlob(pattern, BaseName(info.path)) == GlobMatch::kYes) out->push_back(std::move(info));
  }
  return std::nullopt;
}

std::string MakeAllDirectories(const std::string& path) {
  struct stat info;
  const std::vector<std::string> missing = MissingDirectories(path);
  const std::string there = missing.empty() ? path : DirName(missing.front());
  if (stat(there.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    return GoPathError("mkdir", there, ENOTDIR);
  }
  for (const std::string& directory : missing) {
    if (mkdir(directory.c_str(), 0777) == 0) continue;
    const int error = errno;
    // Somebody else may have made it meanwhile.
    if (lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return GoPathError("mkdir", directory, error);
  }
  return "";
}

std::optional<ApiError> MakeDirectories(const std::map<std::string, Permission>& directories) {
  for (const auto& [sent, permission] : directories) {
    std::string error;
    const std::string path = ResolvePath(sent, &error);
    if (!error.empty()) return Failed("error accessing file: " + error);
    struct stat info;
    if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    std::string failure = MakeAllDirectories(path);
    if (failure.empty()) failure = ApplyPermission(path, permission);
    if (!failure.empty()) return Failed("error accessing file: " + failure);
  }
  return std::nullopt;
}

std::optional<ApiError> RemoveFiles(const std::vector<std::string>& paths) {
  for (const std::string& sent : paths) {
    std::string error;
    const std::string path = ResolvePath(sent, &error);
    const std::string prefix = "error removing file " + sent + ". ";
    if (!error.empty()) return Failed(prefix + error);
    // Follows links, so a dangling one counts as missing and stays.
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) continue;
      return Failed(prefix + GoPathError("stat", path, errno));
    }
    if (S_ISDIR(info.st_mode)) return Failed(prefix + "path is a directory: " + path);
    if (unlink(path.c_str()) != 0) return Failed(prefix + GoPathError("remove", path, errno));
  }
  return std::nullopt;
}

std::optional<ApiError> RemoveDirectories(const std::vector<std::string>& paths) {
  for (const std::string& sent : paths) {
    std::string error;
    const std::string path = ResolvePath(sent, &error);
    if (!error.empty()) return Failed("error resolving directory " + sent + ". " + error);
    std::error_code failure;
    std::filesystem::remove_all(path, failure);
    if (failure) {
      return Failed("error removing directory " + sent + ". " +
                    GoPathError("unlinkat", path, failure.value()));
    }
  }
  return std::nullopt;
}

namespace {

std::optional<ApiError> MoveOne(const std::string& sent_from, const std::string& sent_to) {
  std::string error;
  const std::string from = ResolvePath(sent_from, &error);
  if (!error.empty()) return Failed("error accessing file: " + error);
  const std::string to = ResolvePath(sent_to, &error);
  if (!error.empty()) return Failed("error accessing file: " + error);
  struct stat info;
  if (stat(from.c_str(), &info) != 0) {
    const int failure = errno;
    return AccessFailed(
        failure, "source path not found: " + sent_from + ": " + GoPathError("stat", from, failure));
  }
  if (std::string failure = MakeAllDirectories(DirName(to)); !failure.empty()) {
    return Failed("error accessing file: " + failure);
  }
  if (stat(to.c_str(), &info) == 0) {
    return Failed("error accessing file: destination path already exists: " + sent_to);
  }
  if (rename(from.c_str(), to.c_str()) != 0) {
    return Failed("error accessing file: failed to rename file: rename " + from + " " + to + ": " +
                  GoErrno(errno));
  }
  return std::nullopt;
}

}  // namespace

std::optional<ApiError> MoveFiles(const std::vector<std::pair<std::string, std::string>>& moves) {
  for (const auto& [from, to] : moves) {
    if (auto failure = MoveOne(from, to)) return failure;
  }
  return std::nullopt;
}

std::optional<ApiError> ChangePermissions(const std::map<std::string, Permission>& files) {
  for (const auto& [sent, permission] : files) {
    std::string failure;
    const std::string path = ResolvePath(sent, &failure);
    if (failure.empty()) failure = ApplyPermission(path, permission);
    if (!failure.empty()) return Failed("error changing permissions for " + sent + ". " + failure);
  }
  return std::nullopt;
}

int OpenUploadTarget(const std::string& sent, std::string* path, ApiError* error) {
  std::string reason;
  *path = ResolvePath(sent, &reason);
  if (!reason.empty()) {
    *error = Failed("error resolving target path " + sent + ". " + reason);
    return -1;
  }
  const std::string directory = DirName(*path);
  if (reason = MakeAllDirectories(directory); !reason.empty()) {
    *error = Failed("error creating target directory " + directory + ". " + reason);
    return -1;
  }
  const int fd = open(path->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
  if (fd < 0) {
    *error = Failed("error opening destination file " + *path + ". " +
                    GoPathError("open", *path, errno));
  }
  return fd;
}

// setfsuid and setgroups as bare system calls act on this thread alone.
AssumedFileIdentity::AssumedFileIdentity(uid_t uid, gid_t gid) {
  groups_.resize(65536);
  const int n = getgroups(static_cast<int>(groups_.size()), groups_.data());
  groups_.resize(std::max(n, 0));
  std::vector<gid_t> wanted;
  const UserDatabase users = UserDatabase::Read();
  if (const User* user = users.FindUser(uid)) wanted = users.GroupsOf(*user);
  const bool grouped = syscall(SYS_setgroups, wanted.size(), wanted.data()) == 0;
  setfsgid(gid);
  setfsuid(uid);
  // They report nothing but the former value, so ask again.
  ok_ = (grouped || geteuid() == uid) && static_cast<gid_t>(setfsgid(gid)) == gid &&
        static_cast<uid_t>(setfsuid(uid)) == uid;
}

AssumedFileIdentity::~AssumedFileIdentity() {
  setfsuid(geteuid());
  setfsgid(getegid());
  syscall(SYS_setgroups, groups_.size(), groups_.data());
}

}  // namespace bridge::local::execd
