// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_read.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <vector>

#include "bridge/local/execd/extra/request.h"
#include "bridge/local/execd/file_info.h"
#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd::extra {
namespace {

using http::Exchange;

constexpr size_t kPieceBytes = 256 * 1024;
constexpr int64_t kMaxDepth = 1'000'000;

struct OpenFile {
  int fd = -1;
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
};

struct ReadRequest {
  std::string path;
  std::optional<int64_t> offset;
  std::optional<int64_t> length;
};

// The kernel makes the content of some files up while they are read (/proc, /sys): they occupy
// nothing, and what they say about their size is wrong.
bool IsSized(const struct stat& info) { return info.st_size > 0 && info.st_blocks > 0; }

std::optional<Failure> OpenRegular(const std::string& path, OpenFile* file, struct stat* info) {
  // Looked at first: opening a device may do something.
  if (stat(path.c_str(), info) != 0) return FromErrno("open", path, errno);
  if (S_ISREG(info->st_mode)) {
    file->fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->fd < 0 || fstat(file->fd, info) != 0) return FromErrno("open", path, errno);
  }
  if (S_ISREG(info->st_mode)) return std::nullopt;
  if (S_ISDIR(info->st_mode)) return FromErrno("open", path, EISDIR);
  return Failure{409, "NOT_A_FILE", path + " is neither a file nor a directory"};
}

// read(2) of at most a piece into *buffer.
ssize_t ReadSome(int fd, std::string* buffer, int64_t most) {
  buffer->resize(static_cast<size_t>(std::min<int64_t>(most, kPieceBytes)));
  ssize_t n = 0;
  do {
    n = read(fd, buffer->data(), buffer->size());
  } while (n < 0 && errno == EINTR);
  buffer->resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return n;
}

// To the first byte that is wanted. Some made-up files can only be read from their beginning.
ssize_t SkipTo(int fd, int64_t offset) {
  if (offset == 0 || lseek(fd, offset, SEEK_SET) == offset) return 0;
  std::string ignored;
  for (int64_t left = offset; left > 0;) {
    const ssize_t n = ReadSome(fd, &ignored, left);
    if (n <= 0) return n;
    left -= n;
  }
  return 0;
}

void SendFile(Exchange& exchange) {
  ReadRequest wanted;
  StrictQuery query(exchange.request());
  query.Path("path", &wanted.path);
  query.Integer("offset", 0, INT64_MAX, &wanted.offset);
  query.Integer("length", 0, INT64_MAX, &wanted.length);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  OpenFile file;
  struct stat info = {};
  if (const auto failure = OpenRegular(wanted.path, &file, &info)) return Reply(exchange, *failure);
  const int64_t offset = wanted.offset.value_or(0);
  int64_t left = wanted.length.value_or(INT64_MAX);
  http::Response head{200, {{"Content-Type", "application/octet-stream"}}, ""};
  head.headers.Add("Sandbox-File-Info", "{" + EntryMembers(info, UserDatabase::Read()) + "}");
  const bool sized = IsSized(info);
  if (sized) {
    left = std::clamp<int64_t>(info.st_size - offset, 0, left);
    head.headers.Add("Content-Length", std::to_string(left));
  }
  // What cannot be read at all is said before the answer has begun.
  std::string piece;
  ssize_t n = SkipTo(file.fd, offset);
  if (n == 0 && left > 0) n = ReadSome(file.fd, &piece, left);
  if (n < 0) return Reply(exchange, FromErrno("read", wanted.path, errno));
  if (!exchange.Start(std::move(head)).ok()) return;
  while (n > 0) {
    if (!exchange.Write(piece).ok()) return;
    left -= n;
    n = left > 0 ? ReadSome(file.fd, &piece, left) : 0;
  }
  // Cut off, so that nobody takes it for all: unreadable, or shorter than it was.
  if (n < 0 || (sized && left > 0)) return;
  (void)exchange.Finish();
}

std::string LinkText(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t n = readlink(path.c_str(), text, sizeof(text));
  return n < 0 ? std::string() : std::string(text, static_cast<size_t>(n));
}

void SendInfo(Exchange& exchange) {
  std::string path;
  bool follow = false;
  StrictQuery query(exchange.request());
  query.Path("path", &path);
  query.Flag("follow", &follow);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  struct stat info = {};
  if ((follow ? stat(path.c_str(), &info) : lstat(path.c_str(), &info)) != 0) {
    return Reply(exchange, FromErrno("stat", path, errno));
  }
  std::string json;
  AppendEntry(json, path, info, UserDatabase::Read());
  (void)exchange.Respond({200, {{"Content-Type", "application/json"}}, json});
}

// Entries below a directory in pieces, parents before children, names in byte order.
class DirectoryWriter {
 public:
  DirectoryWriter(Exchange& exchange, UserDatabase users)
      : exchange_(exchange), users_(std::move(users)) {}

  // The names of the uppermost directory.
  std::optional<Failure> Open(const std::string& path) { return ReadNames(path, &root_); }

  // False: the client has gone.
  bool Write(const std::string& path, int64_t depth) {
    out_ = "[";
    if (!WriteNames(path, root_, depth)) return false;
    if (failure_) Add("{\"error\":" + failure_->Json() + "}");
    out_ += ']';
    return exchange_.Write(out_).ok();
  }

 private:
  using Names = std::vector<std::string>;

  static std::optional<Failure> ReadNames(const std::string& path, Names* names) {
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) return FromErrno("open", path, errno);
    errno = 0;
    while (const dirent* entry = readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names->emplace_back(name);
    }
    const int error = errno;
    closedir(directory);
    if (error != 0) return FromErrno("read", path, error);
    std::sort(names->begin(), names->end());
    return std::nullopt;
  }

  bool WriteNames(const std::string& path, const Names& names, int64_t depth) {
    for (const std::string& name : names) {
      const std::string child = path.ends_with('/') ? path + name : path + "/" + name;
      struct stat info = {};
      if (lstat(child.c_str(), &info) != 0) {
        if (errno == ENOENT) continue;  // it has gone meanwhile, and is not there
        failure_ = FromErrno("lstat", child, errno);
        return true;
      }
      std::string entry;
      AppendEntry(entry, child, info, users_);
      Add(entry);
      if (out_.size() >= kPieceBytes) {
        if (!exchange_.Write(out_).ok()) return false;
        out_.clear();
      }
      if (!S_ISDIR(info.st_mode) || depth <= 1) continue;
      Names below;
      failure_ = ReadNames(child, &below);
      if (failure_ && failure_->error == ENOENT) failure_.reset();
      if (failure_) return true;
      if (!WriteNames(child, below, depth - 1)) return false;
      if (failure_) return true;
    }
    return true;
  }

  void Add(std::string_view entry) {
    if (any_) out_ += ',';
    any_ = true;
    out_ += entry;
  }

  Exchange& exchange_;
  const UserDatabase users_;
  Names root_;
  std::string out_;
  bool any_ = false;
  std::optional<Failure> failure_;
};

void SendDirectory(Exchange& exchange) {
  std::string path;
  std::optional<int64_t> depth;
  StrictQuery query(exchange.request());
  query.Path("path", &path);
  query.Integer("depth", 1, kMaxDepth, &depth);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  DirectoryWriter writer(exchange, UserDatabase::Read());
  if (const auto failure = writer.Open(path)) return Reply(exchange, *failure);
  if (!exchange.Start({200, {{"Content-Type", "application/json"}}, ""}).ok()) return;
  if (writer.Write(path, depth.value_or(1))) (void)exchange.Finish();
}

}  // namespace

std::string EntryMembers(const struct stat& info, const UserDatabase& users) {
  std::string out = "\"type\":\"" + std::string(FileTypeName(info.st_mode)) + "\"";
  out += ",\"size\":" + std::to_string(info.st_size);
  out += ",\"mode\":" + std::to_string(info.st_mode & 07777);
  out += ",\"uid\":" + std::to_string(info.st_uid) + ",\"gid\":" + std::to_string(info.st_gid);
  out += ',';
  AppendText(out, "owner", users.UserName(info.st_uid));
  out += ',';
  AppendText(out, "group", users.GroupName(info.st_gid));
  return out + ",\"modified_at\":\"" + GoTime(info.st_mtim.tv_sec, info.st_mtim.tv_nsec) + "\"";
}

void AppendEntry(std::string& out, const std::string& path, const struct stat& info,
                 const UserDatabase& users) {
  out += '{';
  AppendText(out, "path", path);
  out += "," + EntryMembers(info, users);
  if (S_ISLNK(info.st_mode)) {
    out += ',';
    AppendText(out, "symlink_target", LinkText(path));
  }
  out += '}';
}

void AddFileReadRoutes(http::Router& router) {
  router.Add("GET", "/v1/file", SendFile);
  router.Add("GET", "/v1/file/info", SendInfo);
  router.Add("GET", "/v1/directory", SendDirectory);
}

}  // namespace bridge::local::execd::extra
