// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/copy_out.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bridge/base/sha256.h"

namespace bridge::cli {
namespace {

namespace v1 = sandbox::bridge::v1;
using Files = v1::FileService;

// A shorter beginning is not worth to be kept.
constexpr int64_t kWorthKeeping = 1 << 20;
// What a string has where a link's text was no UTF-8.
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct OpenFile {
  int fd = -1;
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
};

std::string ErrnoText() { return std::strerror(errno); }

timespec TimeOf(const v1::FileInfo& info) {
  return {info.modified_at().seconds(), info.modified_at().nanos()};
}

bool IsSame(const struct stat& there, const v1::FileInfo& info) {
  return S_ISREG(there.st_mode) && there.st_size == info.size_bytes() &&
         there.st_mtim.tv_sec == info.modified_at().seconds();
}

// Beside the target; its name says of what it is the beginning.
std::string PartPath(const std::string& sandbox_id, const v1::FileInfo& info,
                     const std::string& target) {
  Sha256 digest;
  digest.Update(fmt::format("{}\n{}\n{}\n{}.{}", sandbox_id, info.path(), info.size_bytes(),
                            info.modified_at().seconds(), info.modified_at().nanos()));
  const std::string directory = target.substr(0, target.rfind('/') + 1);
  return directory + ".sbx-part-" + digest.FinishHex().substr(0, 32);
}

void SetModeAndTime(const std::string& path, const v1::FileInfo& info) {
  chmod(path.c_str(), info.mode() & 07777);
  const timespec times[2] = {TimeOf(info), TimeOf(info)};
  utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

// What a link at the path leads to; the path itself where none is, or where it leads nowhere.
std::string Followed(const std::string& path) {
  char real[PATH_MAX];
  return realpath(path.c_str(), real) != nullptr ? real : path;
}

bool IsBelow(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

// Makes or goes on with a part, which is this process's alone until the descriptor is closed, and
// looks at what was opened. -1: errno says why; EWOULDBLOCK: another process is at it.
int OpenPart(const std::string& part, struct stat* opened) {
  while (true) {
    const int fd =
        open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return -1;
    // Where the file system has no locks, it goes without.
    const bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    // Another may have finished it in between: then it has its place, and is no part any more.
    struct stat there = {};
    const bool moved = fstat(fd, opened) == 0 &&
                       (lstat(part.c_str(), &there) != 0 || there.st_ino != opened->st_ino ||
                        there.st_dev != opened->st_dev);
    if (!taken && !moved) return fd;
    close(fd);
    if (taken) {
      errno = EWOULDBLOCK;
      return -1;
    }
  }
}

}  // namespace

bool CopyOut::Run(const std::vector<std::string>& sources, const std::string& target) {
  struct stat info = {};
  const bool into = stat(target.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (!into && (sources.size() > 1 || target.ends_with('/'))) {
    copy_.Fail(target, "is no directory; make it first, or copy one thing to a name");
    return false;
  }
  for (const std::string& source : sources) {
    if (copy_.interrupted()) break;
    const std::string name = LastPart(source);
    // The target itself is named, so a link there to a directory leads there.
    const std::string base = into ? Followed(target) : target;
    CopyEntry(source, into && !name.empty() ? JoinPath(base, name) : base);
  }
  return true;
}

bool CopyOut::Stat(const std::string& path, bool follow, FileInfo* info) {
  v1::StatRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_path(path);
  request.set_follow_symlink(follow);
  const grpc::Status status =
      Call(copy_.context, copy_.context.bridge.files(), &Files::Stub::Stat, request, info);
  if (!status.ok()) copy_.Fail(path, status);
  return status.ok();
}

void CopyOut::CopyEntry(const std::string& source, const std::string& target) {
  FileInfo info;
  if (!Stat(source, copy_.options.follow, &info)) return;
  switch (info.type()) {
    case v1::FILE_TYPE_DIRECTORY:
      return CopyTree(source, info, target);
    case v1::FILE_TYPE_FILE:
      return TakeFile(info, target);
    case v1::FILE_TYPE_SYMLINK:
      // A link may take the place of a link, but not of one that a person names for its device.
      if (const auto why = LeftAlone(target); !why.empty()) return copy_.Fail(target, why);
      return TakeLink(info, target);
    default:
      copy_.Fail(source, "is neither a file nor a directory nor a link");
  }
}

bool CopyOut::List(const std::string& source, std::vector<FileInfo>* entries) {
  v1::ListDirectoryRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_path(source);
  request.set_depth(-1);
  const auto call = copy_.context.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(copy_.context.interrupts, [&](int) { call->TryCancel(); });
  const auto reader = copy_.context.bridge.files().ListDirectory(call.get(), request);
  v1::FileInfoBatch batch;
  while (reader->Read(&batch)) {
    for (FileInfo& entry : *batch.mutable_entries()) entries->push_back(std::move(entry));
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) copy_.Fail(source, status);
  return status.ok();
}

void CopyOut::CopyTree(const std::string& source, const FileInfo& root, const std::string& target) {
  if (!copy_.options.recursive) return copy_.Fail(source, "is a directory; add -r to copy it");
  std::vector<FileInfo> entries;
  bool made = false;
  if (!List(source, &entries) || !TakeDirectory(root, target, &made)) return;
  // Those that are new: what was there keeps its mode and time.
  std::vector<std::pair<std::string, const FileInfo*>> directories;
  if (made) directories.emplace_back(target, &root);
  // The root as the bridge names it: without "." and the like.
  const std::string prefix = root.path() == "/" ? "/" : root.path() + "/";
  for (const FileInfo& entry : entries) {
    if (copy_.interrupted()) return;
    const bool below = entry.path().starts_with(prefix);
    const std::string relative = below ? entry.path().substr(prefix.size()) : std::string();
    const std::string place = JoinPath(target, relative);
    if (!entry.path_bytes().empty() || entry.path_inexact()) {
      copy_.Fail(entry.path(), "its name is no UTF-8, which no call can say");
    } else if (!IsSafeRelative(relative)) {
      copy_.Fail(entry.path(), "the sandbox names something outside of the directory; left out");
    } else if (IsClosed(place)) {
      continue;  // its directory was complained of
    } else if (entry.type() != v1::FILE_TYPE_DIRECTORY) {
      TakeEntry(entry, place);
    } else if (TakeDirectory(entry, place, &made) && made) {
      directories.emplace_back(place, &entry);
    }
  }
  // Last and from below: a directory's own mode may forbid writing, and writing changes its time.
  for (size_t i = directories.size(); i > 0; --i) {
    SetModeAndTime(directories[i - 1].first, *directories[i - 1].second);
  }
}

// Something of a tree that is no directory.
void CopyOut::TakeEntry(const FileInfo& entry, const std::string& target) {
  const bool follow = entry.type() == v1::FILE_TYPE_SYMLINK && copy_.options.follow;
  FileInfo info = entry;
  if (follow && !Stat(entry.path(), true, &info)) return;
  if (info.type() == v1::FILE_TYPE_FILE) return TakeFile(info, target);
  if (info.type() == v1::FILE_TYPE_SYMLINK) return TakeLink(std::move(info), target);
  copy_.Fail(entry.path(), follow ? "is a link to something that is no file; left out"
                                  : "is neither a file nor a directory nor a link");
}

bool CopyOut::IsClosed(const std::string& target) const {
  for (const std::string& directory : closed_) {
    if (IsBelow(target, directory)) return true;
  }
  return false;
}

bool CopyOut::TakeDirectory(const FileInfo& info, const std::string& target, bool* made) {
  struct stat there = {};
  *made = mkdir(target.c_str(), 0700) == 0;
  if (*made) {
    ++copy_.report.directories;
    // Nearly its own already, so that little is missing if this run does not come to its end.
    chmod(target.c_str(), (info.mode() & 07777) | 0700);
    return true;
  }
  const int error = errno;
  const auto look = copy_.options.follow ? stat : lstat;
  if (error == EEXIST && look(target.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return true;
  closed_.push_back(target);
  if (error != EEXIST) {
    copy_.Fail(target, std::strerror(error));
  } else {
    copy_.Fail(info.path(), S_ISLNK(there.st_mode)
                                ? "a symbolic link is at its place here and is not written through "
                                  "(-L would)"
                                : "something that is no directory is at its place here");
  }
  return false;
}

// Why something of this machine is never replaced, also not by way of a link (/dev/stdout): it
// would be gone. Empty: it may be.
std::string_view CopyOut::LeftAlone(const std::string& place) const {
  struct stat there = {};
  if (stat(place.c_str(), &there) != 0) return "";
  if (!S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    return "is a device, pipe or socket and is left alone; - is stdout";
  }
  if (!copy_.context.streams.WritesTo(there)) return "";
  return "is where the output of sbx goes and is left alone; - is stdout";
}

void CopyOut::TakeFile(const FileInfo& info, const std::string& place) {
  if (const auto why = LeftAlone(place); !why.empty()) return copy_.Fail(place, why);
  struct stat there = {};
  const std::string target = copy_.options.follow ? Followed(place) : place;
  const bool exists = lstat(target.c_str(), &there) == 0;
  if (exists && S_ISLNK(there.st_mode)) {
    return copy_.Fail(place, copy_.options.follow
                                 ? "is a symbolic link that leads to no file; remove it first"
                                 : "is a symbolic link and is not written through (-L would); "
                                   "remove it to have the file in its place");
  }
  if (exists && IsSame(there, info)) {
    ++copy_.report.unchanged;
    if ((there.st_mode & 07777) != (info.mode() & 07777))
      chmod(target.c_str(), info.mode() & 07777);
    return;
  }
  if (exists && S_ISDIR(there.st_mode)) {
    return copy_.Fail(info.path(), "a directory is at its place here");
  }
  const std::string part = PartPath(sandbox_id_, info, target);
  struct stat begun = {};
  const OpenFile file{OpenPart(part, &begun)};
  if (file.fd < 0) {
    return copy_.Fail(target, errno == EWOULDBLOCK
                                  ? "another sbx is copying the same file into this directory"
                                  : ErrnoText());
  }
  if (!S_ISREG(begun.st_mode)) return copy_.Fail(target, "cannot be made");
  const int64_t offset = begun.st_size <= info.size_bytes() ? begun.st_size : 0;
  copy_.progress.Begin(info.path(), info.size_bytes(), offset);
  if (!Receive(info, file.fd, offset)) {
    const bool keep = fstat(file.fd, &begun) == 0 && begun.st_size >= kWorthKeeping;
    if (!keep) unlink(part.c_str());
    return;
  }
  SetModeAndTime(part, info);
  if (rename(part.c_str(), target.c_str()) != 0) {
    copy_.Fail(target, ErrnoText());
    unlink(part.c_str());
    return;
  }
  ++copy_.report.files;
}

// The bytes from `offset` to the end. What went wrong was said.
bool CopyOut::Receive(const FileInfo& info, int fd, int64_t offset) {
  v1::ReadFileRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_path(info.path());
  request.set_offset(offset);
  const auto call = copy_.context.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(copy_.context.interrupts, [&](int) { call->TryCancel(); });
  const auto reader = copy_.context.bridge.files().ReadFile(call.get(), request);
  v1::ReadFileChunk chunk;
  int64_t at = offset;
  std::string failure;
  while (failure.empty() && reader->Read(&chunk)) {
    if (chunk.has_info()) {
      const FileInfo& now = chunk.info();
      if (now.size_bytes() != info.size_bytes() ||
          now.modified_at().seconds() != info.modified_at().seconds()) {
        failure = "it changed while it was copied; copy it again";
      }
      continue;
    }
    std::string_view data = chunk.data();
    while (!data.empty() && failure.empty()) {
      const ssize_t n = pwrite(fd, data.data(), data.size(), at);
      if (n < 0 && errno != EINTR) failure = "writing on this side failed: " + ErrnoText();
      if (n < 0) continue;
      at += n;
      data.remove_prefix(static_cast<size_t>(n));
    }
    copy_.progress.Add(static_cast<int64_t>(chunk.data().size()));
  }
  if (!failure.empty()) call->TryCancel();
  const grpc::Status status = reader->Finish();
  // Files that are made up while they are read (/proc) claim to be empty.
  if (failure.empty() && status.ok() && info.size_bytes() > 0 && at != info.size_bytes()) {
    failure = fmt::format("{} bytes came instead of {}", at, info.size_bytes());
  }
  copy_.report.bytes += at - offset;
  if (failure.empty() && !status.ok()) copy_.Fail(info.path(), status);
  if (!failure.empty()) copy_.Fail(info.path(), failure);
  return failure.empty() && status.ok() && ftruncate(fd, at) == 0;
}

void CopyOut::TakeLink(FileInfo info, const std::string& target) {
  if (info.symlink_target().empty() && !Stat(info.path(), false, &info)) return;
  const std::string& to = info.symlink_target();
  if (to.empty() || to.find(kReplacement) != std::string::npos) {
    return copy_.Fail(info.path(), "what the link says is not known or is no UTF-8");
  }
  char text[PATH_MAX];
  const ssize_t n = readlink(target.c_str(), text, sizeof(text));
  if (n >= 0 && std::string_view(text, static_cast<size_t>(n)) == to) {
    ++copy_.report.unchanged;
    return;
  }
  struct stat there = {};
  const bool exists = lstat(target.c_str(), &there) == 0;
  if (exists && !S_ISLNK(there.st_mode)) {
    return copy_.Fail(info.path(), "something that is no link is at its place here");
  }
  if (exists) unlink(target.c_str());
  if (symlink(to.c_str(), target.c_str()) != 0) return copy_.Fail(target, ErrnoText());
  ++copy_.report.links;
}

bool CopyOut::RunStream(const std::string& source) {
  v1::ReadFileRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_path(source);
  const auto call = copy_.context.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(copy_.context.interrupts, [&](int) {
    call->TryCancel();
    copy_.context.streams.Abandon();
  });
  const auto reader = copy_.context.bridge.files().ReadFile(call.get(), request);
  v1::ReadFileChunk chunk;
  absl::Status written;
  while (written.ok() && reader->Read(&chunk)) {
    if (chunk.has_info()) {
      copy_.progress.Begin(source, chunk.info().size_bytes());
      continue;
    }
    written = copy_.context.streams.Out(chunk.data());
    copy_.report.bytes += static_cast<int64_t>(chunk.data().size());
    copy_.progress.Add(static_cast<int64_t>(chunk.data().size()));
  }
  if (!written.ok()) call->TryCancel();
  const grpc::Status status = reader->Finish();
  if (!written.ok() && !copy_.interrupted()) {
    copy_.Fail(source, std::string(written.message()));
  } else if (!status.ok()) {
    copy_.Fail(source, status);
  } else {
    ++copy_.report.files;
  }
  return true;
}

}  // namespace bridge::cli
