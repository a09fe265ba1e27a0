// SPDX-License-Identifier: Apache-2.0
//
// The calls of FileService that stream. See file_calls.h.
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/service/exec_convert.h"
#include "bridge/service/file_calls.h"
#include "bridge/service/file_convert.h"
#include "bridge/service/glob.h"
#include "bridge/service/target.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

// Entries in one message: 500 with paths of 4 KiB would be 2 MB, so bytes count too.
constexpr size_t kBatchEntries = 500;
constexpr size_t kBatchBytes = 256 * 1024;
constexpr size_t kMaxChunk = size_t{1} << 20;

// Gathers entries and sends them in messages of a bounded size.
class EntrySender {
 public:
  explicit EntrySender(Writer<v1::FileInfoBatch>& call) : call_(call) {}

  // False: the stream is dead.
  Task<bool> Add(const FileInfo& info) {
    FileInfoToProto(info, batch_.add_entries());
    bytes_ += info.path.size() + 100;
    if (bytes_ < kBatchBytes && static_cast<size_t>(batch_.entries_size()) < kBatchEntries) {
      co_return true;
    }
    co_return co_await Flush();
  }
  Task<bool> Flush() {
    if (batch_.entries_size() == 0) co_return true;
    const bool alive = co_await call_.Write(batch_);
    batch_.Clear();
    bytes_ = 0;
    co_return alive;
  }

 private:
  Writer<v1::FileInfoBatch>& call_;
  v1::FileInfoBatch batch_;
  size_t bytes_ = 0;
};

bool Wanted(const v1::SearchRequest& request, FileType type) {
  if (request.types().empty()) return type != FileType::kDirectory;
  for (const int wanted : request.types()) {
    if (wanted == FileTypeToProto(type)) return true;
  }
  return false;
}

std::string_view RelativeTo(const std::string& root, std::string_view path) {
  path.remove_prefix(std::min(path.size(), root.size()));
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  return path;
}

}  // namespace

Task<absl::Status> HandleListDirectory(FileClient& files, Writer<v1::FileInfoBatch>& call,
                                       const v1::ListDirectoryRequest& request) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, PathFromProto("path", request.path()));
  if (request.depth() < -1) co_return InvalidField("depth", "must be -1 or more");
  const int depth = request.depth() == -1  ? kAllLevels
                    : request.depth() == 0 ? 1
                                           : std::min(request.depth(), kAllLevels);
  call.set_waiting_for("the directory's entries");
  absl::StatusOr<std::unique_ptr<FileLister>> lister =
      co_await files.List(call.context(), std::move(target), std::move(path), depth);
  if (!lister.ok()) co_return About(request, lister.status());
  EntrySender sender(call);
  bool alive = true;
  while (alive) {
    absl::StatusOr<std::vector<FileInfo>> entries = co_await (*lister)->Next(kBatchEntries);
    if (!entries.ok()) co_return About(request, entries.status());
    if (entries->empty()) break;
    for (const FileInfo& info : *entries) {
      if (alive) alive = co_await sender.Add(info);
    }
  }
  if (alive) alive = co_await sender.Flush();
  co_return alive ? absl::OkStatus() : About(request, call.Interrupted());
}

Task<absl::Status> HandleSearch(FileClient& files, Writer<v1::FileInfoBatch>& call,
                                const v1::SearchRequest& request) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, PathFromProto("path", request.path()));
  CO_ASSIGN_OR_RETURN(Glob glob, Glob::Parse("pattern", request.pattern()));
  if (request.max_results() < 0) co_return InvalidField("max_results", "must not be negative");
  for (int i = 0; i < request.types_size(); ++i) {
    const int type = request.types(i);
    const std::string field = ElementField("types", static_cast<size_t>(i));
    CO_RETURN_IF_ERROR(CheckEnum(field, type, v1::FileType_IsValid(type)));
    // Nothing is of this type, and nothing would be found without a word.
    if (type == v1::FILE_TYPE_UNSPECIFIED) co_return InvalidField(field, "must be a type");
  }
  call.set_waiting_for("the directory's entries");
  absl::StatusOr<std::unique_ptr<FileLister>> lister =
      co_await files.List(call.context(), std::move(target), path, kAllLevels);
  if (!lister.ok()) co_return About(request, lister.status());
  EntrySender sender(call);
  int left = request.max_results() == 0 ? -1 : request.max_results();
  bool alive = true;
  while (alive && left != 0) {
    absl::StatusOr<std::vector<FileInfo>> entries = co_await (*lister)->Next(kBatchEntries);
    if (!entries.ok()) co_return About(request, entries.status());
    if (entries->empty()) break;
    for (const FileInfo& info : *entries) {
      if (!alive || left == 0) break;
      if (!Wanted(request, info.type) || !glob.Matches(RelativeTo(path, info.path))) continue;
      if (left > 0) --left;
      alive = co_await sender.Add(info);
    }
  }
  if (alive) alive = co_await sender.Flush();
  co_return alive ? absl::OkStatus() : About(request, call.Interrupted());
}

Task<absl::Status> HandleReadFile(FileClient& files, Writer<v1::ReadFileChunk>& call,
                                  const v1::ReadFileRequest& request) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, PathFromProto("path", request.path()));
  if (request.offset() < 0) co_return InvalidField("offset", "must not be negative");
  if (request.has_length() && request.length() < 0) {
    co_return InvalidField("length", "must not be negative");
  }
  std::optional<int64_t> length;
  if (request.has_length()) length = request.length();
  call.set_waiting_for("the file's content");
  absl::StatusOr<std::unique_ptr<FileReader>> reader = co_await files.Read(
      call.context(), std::move(target), std::move(path), request.offset(), length);
  if (!reader.ok()) co_return About(request, reader.status());
  // Two messages in turn: the next piece is fetched while the last one is on its way.
  v1::ReadFileChunk messages[2];
  FileInfoToProto((*reader)->info(), messages[0].mutable_info());
  call.BeginWrite(messages[0]);
  int current = 1;
  bool alive = true;
  while (alive) {
    absl::StatusOr<bool> more = co_await (*reader)->Next(messages[current].mutable_data());
    if (!more.ok()) co_return About(request, more.status());
    if (!*more) break;
    alive = co_await call.Written();
    if (alive) call.BeginWrite(messages[current], WriteHint::kMore);
    current = 1 - current;
  }
  if (alive) alive = co_await call.Written();
  co_return alive ? absl::OkStatus() : About(request, call.Interrupted());
}

Task<absl::Status> HandleWriteFile(FileClient& files, Reader<v1::WriteFileChunk>& call,
                                   v1::WriteFileResponse& response) {
  call.set_waiting_for("the header from the client");
  const v1::WriteFileChunk* chunk = co_await call.Read();
  if (chunk == nullptr && call.interruption() != Interruption::kNone) {
    co_return call.Interrupted();
  }
  if (chunk == nullptr || !chunk->has_header()) {
    co_return InvalidField("header", "must be the first message");
  }
  const v1::WriteFileChunk::Header header = chunk->header();
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(header, "header."));
  CO_ASSIGN_OR_RETURN(FileWrite write, WriteFromProto("header.options", header.options()));
  if (header.has_size_bytes()) {
    if (header.size_bytes() < 0) {
      co_return InvalidField("header.size_bytes", "must not be negative");
    }
    write.size = header.size_bytes();
  }
  const std::string path = write.path;
  absl::StatusOr<std::unique_ptr<FileWriter>> writer =
      co_await files.Write(call.context(), target, std::move(write));
  if (!writer.ok()) co_return About(header, writer.status());
  while (true) {
    call.set_waiting_for("content from the client");
    chunk = co_await call.Read();
    if (chunk == nullptr) break;
    if (chunk->has_header()) co_return InvalidField("header", "must be the first message only");
    if (chunk->data().size() > kMaxChunk) {
      co_return InvalidField("data", "must be at most 1 MiB a message");
    }
    call.set_waiting_for("the sandbox to take content");
    const absl::Status sent = co_await (*writer)->Send(chunk->data());
    if (!sent.ok()) co_return About(header, sent);
  }
  // A client that vanished has not finished its file.
  if (call.interruption() != Interruption::kNone) co_return About(header, call.Interrupted());
  call.set_waiting_for("the file to be put in its place");
  absl::StatusOr<FileWritten> written = co_await (*writer)->Finish();
  if (!written.ok()) co_return About(header, written.status());
  response.set_size_bytes(written->size);
  response.set_sha256(written->sha256);
  response.set_atomic(written->atomic);
  response.set_symlink_followed(written->symlink_followed);
  absl::StatusOr<FileInfo> info =
      co_await files.Stat(call.context(), std::move(target), path, /*follow_symlink=*/true);
  if (!info.ok()) co_return About(header, info.status());
  FileInfoToProto(*info, response.mutable_info());
  co_return absl::OkStatus();
}

Task<absl::Status> HandleWatchDirectory(FileClient& files, Writer<v1::WatchEventBatch>& call,
                                        const v1::WatchDirectoryRequest& request) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, PathFromProto("path", request.path()));
  CO_ASSIGN_OR_RETURN(absl::Duration keepalive, KeepaliveFromProto(request.has_keepalive_interval(),
                                                                   request.keepalive_interval()));
  call.set_waiting_for("the watch to be in place");
  absl::StatusOr<std::unique_ptr<FileWatcher>> watcher = co_await files.Watch(
      call.context(), std::move(target), std::move(path), request.recursive(), keepalive);
  if (!watcher.ok()) co_return About(request, watcher.status());
  call.set_waiting_for("changes in the directory");
  v1::WatchEventBatch batch;
  bool alive = true;
  while (alive) {
    absl::StatusOr<std::vector<FileChange>> changes = co_await (*watcher)->Next();
    if (!changes.ok()) co_return About(request, changes.status());
    batch.Clear();
    for (FileChange& change : *changes) FileChangeToProto(std::move(change), batch.add_events());
    alive = co_await call.Write(batch);
  }
  co_return About(request, call.Interrupted());
}

}  // namespace bridge
