// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_lister.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_codec.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/file_script.h"

namespace bridge {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
// A daemon lists a hundred thousand files before the first byte of its answer.
constexpr absl::Duration kIdle = absl::Seconds(60);

HttpRequest ListRequest(const SandboxHandle& sandbox, const std::string& path, int depth) {
  const std::string_view route =
      sandbox.capabilities->file_read ? "/v1/directory" : "/directories/list";
  HttpRequest request = sandbox.client.Request(
      sandbox.context, *sandbox.daemon, "GET",
      std::string(route) + "?path=" + QueryEscape(path) + "&depth=" + std::to_string(depth),
      absl::InfiniteDuration());
  request.idle_timeout = kIdle;
  request.receive_buffer = 64 * 1024;
  return request;
}

void Rename(std::string_view from, std::string_view to, std::string* path) {
  if (path->empty() || !path->starts_with(from)) return;
  path->replace(0, from.size(), to);
}

}  // namespace

RouteFileLister::RouteFileLister(SandboxHandle sandbox, const std::string& path, int depth)
    : sandbox_(std::move(sandbox)),
      own_(sandbox_.capabilities->file_read),
      transfer_(sandbox_.client.http(), ListRequest(sandbox_, path, depth)) {}

Task<absl::Status> RouteFileLister::Begin() {
  absl::StatusOr<HttpHead> head = co_await transfer_.Head();
  if (!head.ok()) {
    co_return co_await sandbox_.client.Explained(sandbox_.context, sandbox_.daemon, head.status());
  }
  if (head->status == 200) co_return absl::OkStatus();
  HttpResponse response = AnswerOf(*std::move(head));
  absl::StatusOr<std::string> body = co_await transfer_.ReadAll(kMaxErrorBody);
  if (body.ok()) response.body = *std::move(body);
  // Go's own answer is a line of text, the daemon's an object.
  route_missing_ = !own_ && response.status == 404 && !response.body.starts_with('{');
  co_return own_ ? OwnFileError(response, "list a directory")
                 : FileError(response, "list a directory");
}

absl::Status RouteFileLister::Take(std::string_view element, FileInfo* info) const {
  if (!own_) return ParseFileInfo(element, info);
  if (const absl::Status failure = OwnListError(element); !failure.ok()) return failure;
  return ParseOwnFileInfo(element, info);
}

Task<absl::StatusOr<std::vector<FileInfo>>> RouteFileLister::Next(size_t max_entries) {
  std::vector<FileInfo> entries;
  while (true) {
    std::string_view element;
    while (entries.size() < max_entries && splitter_.Next(&element)) {
      CO_RETURN_IF_ERROR(Take(element, &entries.emplace_back()));
    }
    if (entries.size() == max_entries || splitter_.failed()) break;
    // What is here goes out before the next wait.
    if (!entries.empty() || ended_) break;
    const bool more = co_await transfer_.Read(&chunk_);
    if (more) {
      splitter_.Feed(chunk_);
      continue;
    }
    CO_RETURN_IF_ERROR(
        co_await sandbox_.client.Explained(sandbox_.context, sandbox_.daemon, transfer_.result()));
    ended_ = true;
  }
  if (entries.empty()) CO_RETURN_IF_ERROR(splitter_.Finish());
  co_return entries;
}

Task<absl::Status> ScriptFileLister::Begin() {
  CO_ASSIGN_OR_RETURN(alias_, co_await AliasFolder::List(sandbox_, path_, depth_));
  if (alias_->size() == 0) {
    ended_ = true;
    co_return absl::OkStatus();
  }
  FileInfo list{.path = alias_->path(), .type = FileType::kFile, .size = alias_->size()};
  CO_ASSIGN_OR_RETURN(reader_,
                      co_await FileReader::OpenStock(sandbox_, list, list.path, 0, std::nullopt));
  co_return absl::OkStatus();
}

Task<absl::StatusOr<std::vector<FileInfo>>> ScriptFileLister::Next(size_t max_entries) {
  std::vector<FileInfo> entries;
  size_t begin = 0;
  std::string chunk;
  while (entries.size() < max_entries) {
    const size_t end = buffer_.find("\n//", begin);
    if (end != std::string::npos) {
      const auto record = std::string_view(buffer_).substr(begin, end - begin);
      CO_ASSIGN_OR_RETURN(entries.emplace_back(), ParseListRecord(record));
      begin = end + 1;
      continue;
    }
    buffer_.erase(0, begin);
    begin = 0;
    if (ended_) break;
    bool more = false;
    CO_ASSIGN_OR_RETURN(more, co_await reader_->Next(&chunk));
    if (more) {
      buffer_ += chunk;
    } else {
      ended_ = true;
      if (buffer_.ends_with('\n')) buffer_ += "//";  // so that the last record ends like the others
    }
  }
  buffer_.erase(0, begin);
  if (entries.empty() && buffer_ != "//" && !buffer_.empty()) {
    co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                        "the sandbox's find told a list that cannot be read");
  }
  co_return entries;
}

Task<absl::StatusOr<std::vector<FileInfo>>> RenamedFileLister::Next(size_t max_entries) {
  CO_ASSIGN_OR_RETURN(std::vector<FileInfo> entries, co_await inner_->Next(max_entries));
  for (FileInfo& info : entries) {
    Rename(from_, to_, &info.path);
    Rename(from_, to_, &info.path_bytes);
  }
  co_return entries;
}

}  // namespace bridge
