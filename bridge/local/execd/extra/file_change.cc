// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_change.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "bridge/local/execd/extra/file_common.h"
#include "bridge/local/execd/extra/file_read.h"
#include "bridge/local/execd/extra/request.h"
#include "bridge/local/execd/paths.h"
#include "bridge/local/execd/users.h"

namespace bridge::local::execd::extra {
namespace {

using http::Exchange;

int ErrnoOf(int rc) { return rc == 0 ? 0 : errno; }

bool IsSameFile(const std::string& path, const struct stat& file) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && info.st_dev == file.st_dev &&
         info.st_ino == file.st_ino;
}

int RenameToNothing(const std::string& from, const std::string& to) {
  const int error =
      ErrnoOf(renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE));
  // EINVAL is also said of a file system that does not know the flag.
  return error == EINVAL || error == ENOSYS ? RenameInSteps(from, to) : error;
}

int RenameOver(const std::string& from, const std::string& to) {
  struct stat there = {};
  // An empty directory would be replaced by another one.
  if (lstat(to.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return EISDIR;
  return ErrnoOf(rename(from.c_str(), to.c_str()));
}

Failure MoveFailed(const FileMove& request, int error) {
  Failure failure = FromErrno("rename", request.destination, error);
  // The only thing that is said of it: the destination lies in the source, by way of a link.
  if (error == EINVAL) failure.field = "destination";
  return failure;
}

// The name by which /proc knows an open file, followed by `act`. Without /proc it cannot be done.
template <class Act>
int ByProcName(int fd, Act act) {
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  const int error = ErrnoOf(act(name.c_str()));
  return error == ENOENT ? EOPNOTSUPP : error;
}

// chmod of an open file that may not be readable. Kernels before 6.6 know it only by its name in
// /proc.
int ChangeMode(int fd, mode_t mode) {
  constexpr long kFchmodat2 = 452;
  const int error = ErrnoOf(static_cast<int>(syscall(kFchmodat2, fd, "", mode, AT_EMPTY_PATH)));
  if (error != ENOSYS && error != EINVAL && error != EPERM) return error;
  return ByProcName(fd, [mode](const char* name) { return chmod(name, mode); });
}

int ChangeTime(int fd, absl::Time modified_at) {
  const struct timespec times[2] = {{0, UTIME_OMIT}, absl::ToTimespec(modified_at)};
  return ByProcName(fd, [&](const char* name) { return utimensat(AT_FDCWD, name, times, 0); });
}

void HandleMove(Exchange& exchange) {
  FileMove request;
  StrictQuery query(exchange.request());
  query.Path("source", &request.source);
  query.Path("destination", &request.destination);
  query.Flag("overwrite", &request.overwrite);
  query.Flag("parents", &request.parents);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  bool replaced = false;
  if (const auto failure = MoveFile(request, &replaced)) return Reply(exchange, *failure);
  (void)exchange.Respond({200,
                          {{"Content-Type", "application/json"}},
                          replaced ? "{\"replaced\":true}" : "{\"replaced\":false}"});
}

void HandleAttributes(Exchange& exchange) {
  FileAttributes request;
  StrictQuery query(exchange.request());
  query.Path("path", &request.path);
  query.Flag("follow", &request.follow);
  ReadMode(query, &request.mode);
  ReadOwner(query, &request.uid, &request.gid);
  ReadTime(query, "modified_at", &request.modified_at);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  std::string json;
  if (const auto failure = SetFileAttributes(request, &json)) return Reply(exchange, *failure);
  (void)exchange.Respond({200, {{"Content-Type", "application/json"}}, std::move(json)});
}

}  // namespace

int RenameInSteps(const std::string& from, const std::string& to) {
  struct stat moved = {};
  if (lstat(from.c_str(), &moved) != 0) return errno;
  if (S_ISDIR(moved.st_mode)) {
    // It takes the place of an empty directory that is ours, and of nothing else.
    if (mkdir(to.c_str(), 0700) != 0) return errno;
    const int error = ErrnoOf(rename(from.c_str(), to.c_str()));
    if (error != 0) rmdir(to.c_str());
    return error;
  }
  if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) != 0) {
    // Said of file systems without hard links, and of files that only their owner may link.
    return errno == EPERM || errno == EMLINK ? EOPNOTSUPP : errno;
  }
  // Another that has taken its name meanwhile is not what was moved.
  if (IsSameFile(from, moved)) unlink(from.c_str());
  return 0;
}

std::optional<Failure> MoveFile(const FileMove& request, bool* replaced) {
  struct stat info = {};
  if (lstat(request.source.c_str(), &info) != 0) return FromErrno("lstat", request.source, errno);
  Parents parents;
  if (request.parents) {
    if (auto failure = parents.Make(DirName(request.destination))) return failure;
  }
  int error = RenameToNothing(request.source, request.destination);
  *replaced = error == EEXIST && request.overwrite;
  if (*replaced) error = RenameOver(request.source, request.destination);
  if (error != 0) return MoveFailed(request, error);
  parents.Keep();
  return std::nullopt;
}

std::optional<Failure> SetFileAttributes(const FileAttributes& request, std::string* json) {
  struct File {
    int fd;
    ~File() {
      if (fd >= 0) close(fd);
    }
  };
  const int flags = O_PATH | O_CLOEXEC | (request.follow ? 0 : O_NOFOLLOW);
  const File file{open(request.path.c_str(), flags)};
  struct stat info = {};
  if (file.fd < 0 || fstat(file.fd, &info) != 0) return FromErrno("open", request.path, errno);
  if (S_ISLNK(info.st_mode)) return IsALink(request.path);
  // Owner, then mode: changing the owner clears special bits.
  if (request.uid || request.gid) {
    constexpr auto kSame = static_cast<uid_t>(-1);
    const int error = ErrnoOf(fchownat(file.fd, "", request.uid.value_or(kSame),
                                       request.gid.value_or(kSame), AT_EMPTY_PATH));
    if (error != 0) return FromErrno("chown", request.path, error);
  }
  if (request.mode) {
    const int error = ChangeMode(file.fd, *request.mode);
    if (error != 0) return FromErrno("chmod", request.path, error);
  }
  if (request.modified_at) {
    const int error = ChangeTime(file.fd, *request.modified_at);
    if (error != 0) return FromErrno("utimensat", request.path, error);
  }
  if (fstat(file.fd, &info) != 0) return FromErrno("stat", request.path, errno);
  AppendEntry(*json, request.path, info, UserDatabase::Read());
  return std::nullopt;
}

void AddFileChangeRoutes(http::Router& router) {
  router.Add("POST", "/v1/file/move", HandleMove);
  router.Add("POST", "/v1/file/attributes", HandleAttributes);
}

}  // namespace bridge::local::execd::extra
