// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/copy_in.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "bridge/base/sha256.h"
#include "bridge/base/utf8.h"

namespace bridge::cli {
namespace {

namespace v1 = sandbox::bridge::v1;
using Files = v1::FileService;

constexpr size_t kPieceBytes = 256 * 1024;

struct OpenFile {
  int fd = -1;
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
};

std::string ErrnoText() { return std::strerror(errno); }

bool IsMissing(const grpc::Status& status) {
  return FailureOf(status, "").reason == "PATH_NOT_FOUND";
}

// Daemons keep times to the second, some to the nanosecond.
bool IsSame(const v1::FileInfo& there, const struct stat& info) {
  return there.type() == v1::FILE_TYPE_FILE && there.size_bytes() == info.st_size &&
         there.modified_at().seconds() == info.st_mtim.tv_sec;
}

// read(2) into the whole string, given up when the other descriptor becomes readable.
ssize_t ReadSome(int fd, std::string* data, int abandon_fd) {
  while (true) {
    pollfd wanted[] = {{fd, POLLIN, 0}, {abandon_fd, POLLIN, 0}};
    poll(wanted, 2, -1);
    if (wanted[1].revents != 0) {
      errno = ECANCELED;
      return -1;
    }
    const ssize_t n = read(fd, data->data(), data->size());
    if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
  }
}

bool NamesOf(const std::string& directory, std::vector<std::string>* names) {
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return false;
  errno = 0;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
    errno = 0;
  }
  const int error = errno;  // of an end that is none
  closedir(dir);
  std::sort(names->begin(), names->end());
  errno = error;
  return error == 0;
}

}  // namespace

bool CopyIn::Run(const std::vector<std::string>& sources, const std::string& target) {
  std::optional<v1::FileInfo> found;
  // The target itself is named, so a link there to a directory leads there, as with cp.
  if (!Stat(target, /*follow=*/true, &found)) return false;
  const bool into = found && found->type() == v1::FILE_TYPE_DIRECTORY;
  // As the bridge names it: without "." and the like.
  const std::string base = into ? found->path() : target;
  if (!into && (sources.size() > 1 || target.ends_with('/'))) {
    copy_.Fail(target,
               "is no directory of the sandbox; make it first, or copy one thing to a name");
    return false;
  }
  for (const std::string& source : sources) {
    if (copy_.interrupted()) break;
    const std::string name = LastPart(source);
    // The content of "." and ".." goes straight into a directory.
    const std::string place = into && !name.empty() ? JoinPath(base, name) : base;
    if (Index(place)) CopyEntry(source, place);
  }
  return true;
}

bool CopyIn::Stat(const std::string& path, bool follow, std::optional<v1::FileInfo>* found) {
  v1::StatRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_path(path);
  request.set_follow_symlink(follow);
  v1::FileInfo info;
  const grpc::Status status =
      Call(copy_.context, copy_.context.bridge.files(), &Files::Stub::Stat, request, &info);
  if (status.ok()) *found = std::move(info);
  if (status.ok() || IsMissing(status)) return true;
  copy_.Fail(path, status);
  return false;
}

// Learns what is at a place, and below it.
bool CopyIn::Index(const std::string& place) {
  std::optional<v1::FileInfo> found;
  if (!Stat(place, /*follow=*/false, &found)) return false;
  if (!found) return true;
  const bool is_directory = found->type() == v1::FILE_TYPE_DIRECTORY;
  there_[place] = *std::move(found);
  if (!is_directory || !copy_.options.recursive) return true;
  v1::ListDirectoryRequest list;
  list.set_sandbox_id(sandbox_id_);
  list.set_path(place);
  list.set_depth(-1);
  const auto call = copy_.context.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(copy_.context.interrupts, [&](int) { call->TryCancel(); });
  const auto reader = copy_.context.bridge.files().ListDirectory(call.get(), list);
  v1::FileInfoBatch batch;
  while (reader->Read(&batch)) {
    for (v1::FileInfo& entry : *batch.mutable_entries()) {
      const std::string path = entry.path();
      there_[path] = std::move(entry);
    }
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) copy_.Fail(place, status);
  return status.ok();
}

const v1::FileInfo* CopyIn::There(const std::string& target) const {
  const auto it = there_.find(target);
  return it == there_.end() ? nullptr : &it->second;
}

void CopyIn::CopyEntry(const std::string& source, const std::string& target) {
  struct stat info = {};
  const bool follow = copy_.options.follow;
  if ((follow ? stat(source.c_str(), &info) : lstat(source.c_str(), &info)) != 0) {
    return copy_.Fail(source, ErrnoText());
  }
  if (!IsValidUtf8(target))
    return copy_.Fail(source, "its name is no UTF-8, which no call can say");
  const v1::FileInfo* there = There(target);
  if (there != nullptr && there->type() == v1::FILE_TYPE_SYMLINK && !S_ISLNK(info.st_mode) &&
      !follow) {
    return copy_.Fail(source, fmt::format("a symbolic link is at {} and is not written through "
                                          "(-L would)",
                                          target));
  }
  if (S_ISDIR(info.st_mode)) return CopyDirectory(source, target, info);
  if (S_ISREG(info.st_mode)) return CopyFile(source, target, info);
  if (S_ISLNK(info.st_mode)) return CopyLink(source, target);
  copy_.Fail(source, "is neither a file nor a directory nor a link");
}

void CopyIn::CopyDirectory(const std::string& source, const std::string& target,
                           const struct stat& info) {
  if (!copy_.options.recursive) return copy_.Fail(source, "is a directory; add -r to copy it");
  const std::pair<dev_t, ino_t> self{info.st_dev, info.st_ino};
  if (std::find(above_.begin(), above_.end(), self) != above_.end()) {
    return copy_.Fail(source, "leads back to a directory above it");
  }
  v1::MakeDirectoryRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_path(target);
  // Its own mode comes last: it might forbid to write into it.
  request.set_mode((info.st_mode & 07777) | 0700);
  v1::MakeDirectoryResponse made;
  const grpc::Status status = Call(copy_.context, copy_.context.bridge.files(),
                                   &Files::Stub::MakeDirectory, request, &made);
  if (!status.ok()) return copy_.Fail(source, status);
  std::vector<std::string> names;
  if (!NamesOf(source, &names)) return copy_.Fail(source, ErrnoText());
  above_.push_back(self);
  for (const std::string& name : names) {
    if (copy_.interrupted()) break;
    CopyEntry(JoinPath(source, name), JoinPath(target, name));
  }
  above_.pop_back();
  if (!made.created()) return;
  ++copy_.report.directories;
  // Last: what is put into it changes its time. A run that goes on must be able to write into it.
  if (!copy_.interrupted()) Finish(target, info);
}

void CopyIn::CopyFile(const std::string& source, const std::string& target,
                      const struct stat& info) {
  const v1::FileInfo* there = There(target);
  if (there != nullptr && IsSame(*there, info)) {
    ++copy_.report.unchanged;
    if ((there->mode() & 07777) != (info.st_mode & 07777)) Finish(target, info);
    return;
  }
  const int flags = O_RDONLY | O_CLOEXEC | (copy_.options.follow ? 0 : O_NOFOLLOW);
  const OpenFile file{open(source.c_str(), flags)};
  if (file.fd < 0) return copy_.Fail(source, ErrnoText());
  copy_.progress.Begin(source, info.st_size);
  if (!Send(file.fd, target, &info)) return;
  Finish(target, info);
}

// The content of a descriptor as the file at `target`; `info` null: as much as comes. What went
// wrong was said.
bool CopyIn::Send(int fd, const std::string& target, const struct stat* info) {
  const auto call = copy_.context.bridge.NewContext(absl::InfiniteDuration());
  const Interrupts::Scope scope(copy_.context.interrupts, [&](int) {
    call->TryCancel();
    copy_.context.streams.Abandon();
  });
  v1::WriteFileResponse response;
  const auto writer = copy_.context.bridge.files().WriteFile(call.get(), &response);
  v1::WriteFileChunk chunk;
  v1::WriteFileChunk::Header* header = chunk.mutable_header();
  header->set_sandbox_id(sandbox_id_);
  header->mutable_options()->set_path(target);
  header->mutable_options()->set_no_follow(!copy_.options.follow);
  if (info != nullptr) header->mutable_options()->set_mode(info->st_mode & 07777);
  // Files that are made up while they are read (/proc) claim to be empty.
  const bool announced = info != nullptr && info->st_size > 0;
  if (announced) header->set_size_bytes(info->st_size);
  Sha256 digest;
  int64_t sent = 0;
  std::string failure;
  bool alive = writer->Write(chunk);
  while (alive) {
    std::string* data = chunk.mutable_data();
    data->resize(kPieceBytes);
    const ssize_t n = ReadSome(fd, data, copy_.context.streams.abandon_fd());
    if (n < 0) failure = "reading this side failed: " + ErrnoText();
    if (announced && n >= 0 && (n == 0 ? sent != info->st_size : sent + n > info->st_size)) {
      failure = "this side's file changed while it was copied; copy it again";
    }
    if (!failure.empty()) call->TryCancel();
    if (n <= 0 || !failure.empty()) break;
    data->resize(static_cast<size_t>(n));
    digest.Update(*data);
    sent += n;
    alive = writer->Write(chunk);
    copy_.progress.Add(n);
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!failure.empty() && !copy_.interrupted()) copy_.Fail(target, failure);
  if (failure.empty() && !status.ok()) copy_.Fail(target, status);
  if (!failure.empty() || !status.ok()) return false;
  if (response.sha256() != digest.FinishHex()) {
    copy_.Fail(target, "the sandbox has other bytes than were sent");
    return false;
  }
  ++copy_.report.files;
  copy_.report.bytes += sent;
  return true;
}

// Mode and time as on this side. The time is what tells a later run that the file is there.
void CopyIn::Finish(const std::string& target, const struct stat& info) {
  v1::SetAttributesRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_path(target);
  request.set_mode(info.st_mode & 07777);
  request.set_follow_symlink(copy_.options.follow);
  request.mutable_modified_at()->set_seconds(info.st_mtim.tv_sec);
  request.mutable_modified_at()->set_nanos(static_cast<int32_t>(info.st_mtim.tv_nsec));
  v1::FileInfo ignored;
  const grpc::Status status = Call(copy_.context, copy_.context.bridge.files(),
                                   &Files::Stub::SetAttributes, request, &ignored);
  if (!status.ok()) copy_.Fail(target, status);
}

void CopyIn::CopyLink(const std::string& source, const std::string& target) {
  char text[PATH_MAX];
  const ssize_t n = readlink(source.c_str(), text, sizeof(text));
  if (n < 0) return copy_.Fail(source, ErrnoText());
  const std::string to(text, static_cast<size_t>(n));
  if (!IsValidUtf8(to)) return copy_.Fail(source, "what the link says is no UTF-8");
  const v1::FileInfo* there = There(target);
  if (there != nullptr && there->symlink_target() == to) {
    ++copy_.report.unchanged;
    return;
  }
  if (there != nullptr && there->type() != v1::FILE_TYPE_SYMLINK) {
    return copy_.Fail(source, fmt::format("something that is no link is at {}", target));
  }
  // The API makes no links; the sandbox's own tool does.
  v1::RunRequest request;
  request.set_sandbox_id(sandbox_id_);
  for (const std::string& word :
       {std::string("ln"), std::string("-sfn"), std::string("--"), to, target}) {
    request.mutable_spec()->mutable_argv()->add_args(word);
  }
  v1::RunResponse response;
  const grpc::Status status = Call(copy_.context, copy_.context.bridge.exec(),
                                   &v1::ExecService::Stub::Run, request, &response);
  if (!status.ok()) return copy_.Fail(source, status);
  if (!response.outcome().has_exit_code() || response.outcome().exit_code() != 0) {
    return copy_.Fail(source, "the sandbox's `ln` could not make the link");
  }
  ++copy_.report.links;
}

bool CopyIn::RunStream(int fd, const std::string& target) {
  std::optional<v1::FileInfo> there;
  if (!Stat(target, copy_.options.follow, &there)) return false;
  if (there && there->type() == v1::FILE_TYPE_SYMLINK) {
    copy_.Fail(target, "is a symbolic link and is not written through (-L would)");
    return false;
  }
  if (there && there->type() == v1::FILE_TYPE_DIRECTORY) {
    copy_.Fail(target, "is a directory; name the file that the input becomes");
    return false;
  }
  copy_.progress.Begin(target, 0);
  (void)Send(fd, target, nullptr);
  return true;
}

}  // namespace bridge::cli
