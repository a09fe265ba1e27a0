// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_reader.h"

#include <algorithm>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_codec.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/file_stat.h"

namespace bridge {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
constexpr absl::Duration kIdle = absl::Seconds(60);

int64_t Length(const FileInfo& info, int64_t offset, std::optional<int64_t> length) {
  const int64_t rest = std::max<int64_t>(0, info.size - offset);
  return length ? std::min(*length, rest) : rest;
}

// Files of these places are made up while they are read: their size in a description means nothing.
// Elsewhere (a FUSE mount, a control group) such files claim to be empty.
bool MayLieAboutItsSize(const FileInfo& info) {
  return info.size == 0 || info.path.starts_with("/proc/") || info.path.starts_with("/sys/");
}

absl::Status Shrunk() {
  return MakeError(ErrorReason::ERROR_REASON_OUTPUT_TRUNCATED,
                   "the file became shorter while it was read");
}

}  // namespace

Task<absl::StatusOr<std::unique_ptr<FileReader>>> FileReader::OpenOwn(
    SandboxHandle sandbox, std::string path, int64_t offset, std::optional<int64_t> length) {
  std::unique_ptr<FileReader> reader(new FileReader(std::move(sandbox)));
  CO_RETURN_IF_ERROR(co_await reader->BeginOwn(std::move(path), offset, length));
  co_return reader;
}

Task<absl::Status> FileReader::BeginOwn(std::string path, int64_t offset,
                                        std::optional<int64_t> length) {
  place_ = path;
  offset_ = offset;
  std::string target = "/v1/file?path=" + QueryEscape(path);
  if (offset > 0) target += "&offset=" + std::to_string(offset);
  if (length) target += "&length=" + std::to_string(*length);
  StartTransfer(target, length.value_or(kChunkBytes));
  CO_ASSIGN_OR_RETURN(HttpHead head, co_await AwaitHead());
  if (head.status != 200) {
    const HttpResponse answer = co_await ErrorAnswer(std::move(head));
    co_return OwnReadError(answer);
  }
  const auto info = head.headers.Get("Sandbox-File-Info");
  if (!info) {
    co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                        "the sandbox's daemon sent a file without its description");
  }
  CO_RETURN_IF_ERROR(ParseOwnFileInfo(*info, &info_));
  info_.path = std::move(path);
  co_return absl::OkStatus();
}

Task<absl::StatusOr<std::unique_ptr<FileReader>>> FileReader::OpenStock(
    SandboxHandle sandbox, FileInfo info, std::string shown_path, int64_t offset,
    std::optional<int64_t> length) {
  std::unique_ptr<FileReader> reader(new FileReader(std::move(sandbox)));
  reader->info_ = std::move(info);
  reader->offset_ = offset;
  std::string& place = reader->place_;
  place = reader->info_.path;
  FileInfo real = reader->info_;  // as it is read
  if (MayLieAboutItsSize(real)) {
    CO_ASSIGN_OR_RETURN(reader->alias_, co_await AliasFolder::Copy(reader->sandbox_, place));
    real.size = reader->alias_->size();
  } else if (!RoutesTakeLiterally(place)) {
    CO_ASSIGN_OR_RETURN(reader->alias_, co_await AliasFolder::Link(reader->sandbox_, place));
  }
  if (reader->alias_ != nullptr) place = reader->alias_->path();
  reader->left_ = Length(real, offset, length);
  reader->whole_ = offset == 0 && *reader->left_ == real.size;
  reader->info_.path = std::move(shown_path);
  co_return reader;
}

Task<absl::StatusOr<bool>> FileReader::Next(std::string* chunk) {
  if (left_ == 0) {
    transfer_.reset();
    co_return false;
  }
  if (transfer_ == nullptr) CO_RETURN_IF_ERROR(co_await BeginStock());
  const bool more = co_await transfer_->Read(chunk);
  if (more) {
    if (!left_) co_return true;
    // A daemon that sends more than the range has grown the file meanwhile, or ignores ranges.
    if (static_cast<int64_t>(chunk->size()) > *left_) chunk->resize(static_cast<size_t>(*left_));
    *left_ -= static_cast<int64_t>(chunk->size());
    co_return true;
  }
  if (!transfer_->result().ok()) co_return co_await CutShort(transfer_->result());
  if (!left_) co_return false;
  co_return Shrunk();
}

void FileReader::StartTransfer(const std::string& target, int64_t expected) {
  HttpRequest request = sandbox_.client.Request(sandbox_.context, *sandbox_.daemon, "GET", target,
                                                absl::InfiniteDuration());
  if (left_ && !whole_) {
    request.headers.Set(
        "Range", "bytes=" + std::to_string(offset_) + "-" + std::to_string(offset_ + *left_ - 1));
  }
  request.idle_timeout = kIdle;
  // A chunk ends with the block of curl's that filled it, of at most 16 KiB.
  request.chunk_bytes = kChunkBytes - 16 * 1024;
  request.max_chunks = 3;
  request.whole_chunks = true;
  const auto size = static_cast<size_t>(std::min<int64_t>(expected, 256 * 1024));
  request.receive_buffer = std::max<size_t>(16 * 1024, size);
  transfer_ = std::make_unique<Transfer>(sandbox_.client.http(), std::move(request));
}

Task<absl::Status> FileReader::BeginStock() {
  StartTransfer("/files/download?path=" + QueryEscape(place_), *left_);
  CO_ASSIGN_OR_RETURN(HttpHead head, co_await AwaitHead());
  if (head.status == 206 || (head.status == 200 && offset_ == 0)) co_return absl::OkStatus();
  co_return co_await FailureOf(std::move(head));
}

Task<absl::StatusOr<HttpHead>> FileReader::AwaitHead() {
  absl::StatusOr<HttpHead> head = co_await transfer_->Head();
  if (head.ok()) co_return head;
  co_return co_await Explained(head.status());
}

Task<absl::Status> FileReader::Explained(absl::Status failure) {
  co_return co_await sandbox_.client.Explained(sandbox_.context, sandbox_.daemon,
                                               std::move(failure));
}

Task<HttpResponse> FileReader::ErrorAnswer(HttpHead head) {
  HttpResponse response = AnswerOf(std::move(head));
  absl::StatusOr<std::string> body = co_await transfer_->ReadAll(kMaxErrorBody);
  if (body.ok()) response.body = *std::move(body);
  co_return response;
}

Task<absl::Status> FileReader::FailureOf(HttpHead head) {
  if (head.status == 416) co_return Shrunk();
  if (head.status == 200) {
    co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                        "the sandbox's daemon ignored a byte range");
  }
  const HttpResponse answer = co_await ErrorAnswer(std::move(head));
  co_return FileError(answer, "read a file");
}

// Daemons end the connection when a file has fewer bytes than they promised.
Task<absl::Status> FileReader::CutShort(absl::Status status) {
  if (ReasonOf(status) == ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE) {
    const absl::StatusOr<FileInfo> now = co_await StatFile(sandbox_, place_, /*follow=*/true);
    if (now.ok() && now->size < info_.size) co_return Shrunk();
  }
  co_return co_await Explained(std::move(status));
}

}  // namespace bridge
