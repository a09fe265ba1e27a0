// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_write.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <mutex>

#include "bridge/local/execd/extra/digest.h"
#include "bridge/local/execd/extra/file_common.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/paths.h"
#include "bridge/local/execd/upload.h"
#include "bridge/local/execd/users.h"
#include "bridge/local/execd/uuid.h"

namespace bridge::local::execd::extra {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;
constexpr int kMaxLinks = 40;  // as the kernel
constexpr mode_t kDefaultMode = 0644;

// What is at the path now.
struct Target {
  std::string path;  // after following links
  bool exists = false;
  struct stat stat = {};
};

// Closes a descriptor, and removes a name unless it was given up.
struct Cleanup {
  int fd = -1;
  std::string name;
  ~Cleanup() {
    if (fd >= 0) close(fd);
    if (!name.empty()) unlink(name.c_str());
  }
};

Failure NotAFile(const std::string& path, std::string_view what) {
  return {409, "NOT_A_FILE", path + " is " + std::string(what)};
}

std::optional<Failure> Look(Target* target) {
  if (lstat(target->path.c_str(), &target->stat) == 0) {
    target->exists = true;
    return std::nullopt;
  }
  if (errno == ENOENT) return std::nullopt;
  return FromErrno("lstat", target->path, errno);
}

// One link further.
std::optional<Failure> Follow(Target* target) {
  char text[PATH_MAX];
  const ssize_t n = readlink(target->path.c_str(), text, sizeof(text));
  if (n < 0) return FromErrno("readlink", target->path, errno);
  const std::string to(text, static_cast<size_t>(n));
  const size_t slash = target->path.rfind('/');
  target->path = to.starts_with('/') ? to : target->path.substr(0, slash + 1) + to;
  target->exists = false;
  return Look(target);
}

std::optional<Failure> FindTarget(const FileWrite& request, Target* target) {
  target->path = request.path;
  if (target->path.back() == '/') {
    return FromErrno("open", request.path, EISDIR);
  }
  if (auto failure = Look(target)) return failure;
  for (int links = 0; target->exists && S_ISLNK(target->stat.st_mode); ++links) {
    if (request.symlink == FileWrite::Symlink::kReplace) return std::nullopt;
    if (request.symlink == FileWrite::Symlink::kRefuse) {
      return IsALink(request.path);
    }
    if (links == kMaxLinks) return FromErrno("open", request.path, ELOOP);
    if (auto failure = Follow(target)) return failure;
  }
  if (!target->exists || S_ISREG(target->stat.st_mode)) return std::nullopt;
  if (S_ISDIR(target->stat.st_mode)) return FromErrno("open", target->path, EISDIR);
  return NotAFile(target->path, "neither a file nor a directory");
}

std::string TimeText(const struct timespec& time) { return GoTime(time.tv_sec, time.tv_nsec); }

std::optional<Failure> DigestOf(const std::string& path, std::string* hex) {
  const Cleanup file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), ""};
  if (file.fd < 0) return FromErrno("open", path, errno);
  Digest digest;
  std::string buffer(kPieceBytes, '\0');
  while (true) {
    const ssize_t n = read(file.fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FromErrno("read", path, errno);
    if (n == 0) break;
    digest.Add(std::string_view(buffer).substr(0, n));
  }
  *hex = digest.Hex();
  return std::nullopt;
}

Failure PreconditionFailed(std::string message) {
  return {412, "PRECONDITION_FAILED", std::move(message)};
}

std::optional<Failure> CheckPreconditions(const FileWrite& request, const Target& target) {
  if (request.if_absent && target.exists) {
    return PreconditionFailed(target.path + " exists");
  }
  if (!request.if_sha256 && !request.if_modified_at) return std::nullopt;
  if (!target.exists) return PreconditionFailed(target.path + " does not exist");
  if (request.if_modified_at) {
    if (absl::TimeFromTimespec(target.stat.st_mtim) == *request.if_modified_at) return std::nullopt;
    return PreconditionFailed(target.path + " was modified at another time")
        .With("actual_modified_at", "\"" + TimeText(target.stat.st_mtim) + "\"");
  }
  std::string actual;
  if (auto failure = DigestOf(target.path, &actual)) return failure;
  if (actual == *request.if_sha256) return std::nullopt;
  return PreconditionFailed(target.path + " has another content")
      .With("actual_sha256", "\"" + actual + "\"");
}

// What was read of the content.
struct Content {
  Digest digest;
  int64_t size = 0;
  std::string sha256;
};

// From the source to `put`, which returns an errno.
std::optional<Failure> CopyContent(const FileWrite& request, const ContentSource& source,
                                   const std::function<int(std::string_view)>& put,
                                   Content* content) {
  std::string buffer(kPieceBytes, '\0');
  while (true) {
    const int64_t n = source(buffer.data(), buffer.size());
    if (n < 0) return Failure{422, "SHORT_BODY", "the body broke off"};
    if (n == 0) break;
    const std::string_view bytes = std::string_view(buffer).substr(0, static_cast<size_t>(n));
    content->digest.Add(bytes);
    content->size += n;
    if (const int error = put(bytes); error != 0) return FromErrno("write", request.path, error);
  }
  content->sha256 = content->digest.Hex();
  if (request.size && *request.size != content->size) {
    return Failure{422, "SHORT_BODY",
                   "the body has " + std::to_string(content->size) + " bytes, not " +
                       std::to_string(*request.size)};
  }
  if (request.sha256 && *request.sha256 != content->sha256) {
    return Failure{422, "DIGEST_MISMATCH", "the body is not what sha256 promises"}.With(
        "actual_sha256", "\"" + content->sha256 + "\"");
  }
  return std::nullopt;
}

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

// Owner, then mode: changing the owner clears special bits.
std::optional<Failure> SetAttributes(const FileWrite& request, const Target& target, int fd) {
  struct stat now = {};
  fstat(fd, &now);
  const bool keeps = target.exists && S_ISREG(target.stat.st_mode);
  const uid_t uid = request.uid.value_or(keeps ? target.stat.st_uid : now.st_uid);
  const gid_t gid = request.gid.value_or(keeps ? target.stat.st_gid : now.st_gid);
  if ((uid != now.st_uid || gid != now.st_gid) && fchown(fd, uid, gid) != 0) {
    return FromErrno("chown", target.path, errno);
  }
  const mode_t mode = request.mode.value_or(keeps ? target.stat.st_mode & 07777 : kDefaultMode);
  if (fchmod(fd, mode) != 0) return FromErrno("chmod", target.path, errno);
  return std::nullopt;
}

std::string ResultJson(const Target& target, const Content& content, int fd, bool atomic) {
  struct stat now = {};
  fstat(fd, &now);
  const UserDatabase users = UserDatabase::Read();
  std::string out = "{";
  AppendText(out, "path", target.path);
  out += ",\"size\":" + std::to_string(content.size) + ",\"sha256\":\"" + content.sha256 +
         "\",\"mode\":" + std::to_string(now.st_mode & 07777) +
         ",\"uid\":" + std::to_string(now.st_uid) + ",\"gid\":" + std::to_string(now.st_gid) + ",";
  AppendText(out, "owner", users.UserName(now.st_uid));
  out += ",";
  AppendText(out, "group", users.GroupName(now.st_gid));
  out += ",\"modified_at\":\"" + TimeText(now.st_mtim) + "\",\"created\":";
  out += target.exists ? "false" : "true";
  out += atomic ? ",\"atomic\":true}" : ",\"atomic\":false}";
  return out;
}

// Gives the temporary file its name. With `new_only` never over another.
std::optional<Failure> Rename(const std::string& from, const Target& target, bool new_only) {
  int rc = new_only
               ? renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, target.path.c_str(), RENAME_NOREPLACE)
               : rename(from.c_str(), target.path.c_str());
  if (rc != 0 && new_only && (errno == EINVAL || errno == ENOSYS)) {
    rc = link(from.c_str(), target.path.c_str());
    if (rc == 0) unlink(from.c_str());
  }
  if (rc == 0) return std::nullopt;
  if (new_only && errno == EEXIST) return PreconditionFailed(target.path + " exists");
  return FromErrno("rename", target.path, errno);
}

std::optional<Failure> ReplaceInOneStep(const FileWrite& request, const ContentSource& source,
                                        Target& target, std::string* json) {
  const std::string directory = target.path.substr(0, target.path.rfind('/') + 1);
  Cleanup temporary{-1, directory + ".execd-" + RandomHex32() + ".tmp"};
  temporary.fd = open(temporary.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (temporary.fd < 0) {
    temporary.name.clear();
    return FromErrno("create", target.path, errno);
  }
  Content content;
  const auto put = [&](std::string_view bytes) { return WriteAll(temporary.fd, bytes); };
  if (auto failure = CopyContent(request, source, put, &content)) return failure;
  if (auto failure = SetAttributes(request, target, temporary.fd)) return failure;
  if (request.sync && fsync(temporary.fd) != 0) return FromErrno("fsync", target.path, errno);
  // Of two writes with a condition the second one looks when the first one is done.
  static std::mutex turns;
  std::unique_lock<std::mutex> turn(turns, std::defer_lock);
  if (request.if_sha256 || request.if_modified_at) turn.lock();
  // The body may have taken its time.
  Target now{target.path};
  if (auto failure = Look(&now)) return failure;
  if (auto failure = CheckPreconditions(request, now)) return failure;
  if (now.exists && S_ISDIR(now.stat.st_mode)) return FromErrno("rename", target.path, EISDIR);
  if (auto failure = Rename(temporary.name, target, request.if_absent)) return failure;
  temporary.name.clear();
  if (request.sync) {
    const Cleanup parent{open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), ""};
    // Some file systems cannot; the file itself is safe.
    if (parent.fd >= 0) (void)!fsync(parent.fd);
  }
  *json = ResultJson(target, content, temporary.fd, /*atomic=*/true);
  return std::nullopt;
}

std::optional<Failure> WriteInPlace(const FileWrite& request, const ContentSource& source,
                                    Target& target, std::string* json) {
  Content content;
  Blob collected;
  const bool collect = request.size || request.sha256;  // to be known before anything is changed
  if (collect) {
    const auto put = [&](std::string_view bytes) {
      return collected.Append(bytes, 1 << 20) ? 0 : ENOSPC;
    };
    if (auto failure = CopyContent(request, source, put, &content)) return failure;
  }
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
                    (request.if_absent ? O_EXCL : O_TRUNC);
  const Cleanup file{open(target.path.c_str(), flags, 0600), ""};
  if (file.fd < 0) {
    if (errno == EEXIST) return PreconditionFailed(target.path + " exists");
    return FromErrno("open", target.path, errno);
  }
  if (auto failure = SetAttributes(request, target, file.fd)) return failure;
  if (collect) {
    if (const int error = collected.CopyTo(file.fd); error != 0) {
      return FromErrno("write", target.path, error);
    }
  } else {
    const auto put = [&](std::string_view bytes) { return WriteAll(file.fd, bytes); };
    if (auto failure = CopyContent(request, source, put, &content)) return failure;
  }
  if (request.sync && fsync(file.fd) != 0) return FromErrno("fsync", target.path, errno);
  *json = ResultJson(target, content, file.fd, /*atomic=*/false);
  return std::nullopt;
}

}  // namespace

std::optional<Failure> WriteWholeFile(const FileWrite& request, const ContentSource& source,
                                      std::string* json) {
  Target target;
  if (auto failure = FindTarget(request, &target)) return failure;
  if (auto failure = CheckPreconditions(request, target)) return failure;
  Parents parents;
  if (request.parents) {
    if (auto failure = parents.Make(DirName(target.path))) return failure;
  }
  auto failure = request.atomic ? ReplaceInOneStep(request, source, target, json)
                                : WriteInPlace(request, source, target, json);
  if (!failure) parents.Keep();
  return failure;
}

}  // namespace bridge::local::execd::extra
