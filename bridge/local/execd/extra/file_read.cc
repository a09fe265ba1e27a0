// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_read.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>

#include "bridge/local/execd/extra/request.h"
#include "bridge/local/execd/file_info.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/tree.h"

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

// What a walk finds as a JSON array, in pieces. False: the client has gone.
bool WriteEntries(Exchange& exchange, TreeWalk& walk) {
  const UserDatabase users = UserDatabase::Read();
  std::string out = "[";
  bool any = false;
  const auto add = [&](const std::string& entry) {
    if (std::exchange(any, true)) out += ',';
    out += entry;
  };
  FileInfo info;
  WalkFailure failure;
  TreeWalk::Step step;
  while ((step = walk.Next(&info, &failure)) != TreeWalk::Step::kEnd) {
    if (step == TreeWalk::Step::kFailed) {
      if (failure.error == ENOENT) continue;  // it has gone meanwhile, and is not there
      add("{\"error\":" + FromErrno(failure.operation, failure.path, failure.error).Json() + "}");
      break;
    }
    std::string entry;
    AppendEntry(entry, info.path, info.stat, users);
    add(entry);
    if (out.size() < kPieceBytes) continue;
    if (!exchange.Write(out).ok()) return false;
    out.clear();
  }
  return exchange.Write(out += ']').ok();
}

void SendDirectory(Exchange& exchange) {
  std::string path;
  std::optional<int64_t> depth;
  StrictQuery query(exchange.request());
  query.Path("path", &path);
  query.Integer("depth", 1, kMaxDepth, &depth);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  TreeWalk walk(depth.value_or(1));
  if (const auto failure = walk.Open(path)) {
    return Reply(exchange, FromErrno(failure->operation, failure->path, failure->error));
  }
  if (!exchange.Start({200, {{"Content-Type", "application/json"}}, ""}).ok()) return;
  if (WriteEntries(exchange, walk)) (void)exchange.Finish();
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
