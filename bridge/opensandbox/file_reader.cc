// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_reader.h"

#include <algorithm>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_error.h"

namespace bridge {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
constexpr absl::Duration kIdle = absl::Seconds(60);

int64_t Length(const FileInfo& info, int64_t offset, std::optional<int64_t> length) {
  const int64_t rest = std::max<int64_t>(0, info.size - offset);
  return length ? std::min(*length, rest) : rest;
}

}  // namespace

FileReader::FileReader(SandboxHandle sandbox, std::string path, FileInfo info, int64_t offset,
                       std::optional<int64_t> length)
    : sandbox_(std::move(sandbox)),
      path_(std::move(path)),
      info_(std::move(info)),
      offset_(offset),
      left_(Length(info_, offset, length)) {}

Task<absl::StatusOr<bool>> FileReader::Next(std::string* chunk) {
  if (left_ == 0) {
    transfer_.reset();
    co_return false;
  }
  if (transfer_ == nullptr) CO_RETURN_IF_ERROR(co_await Open());
  const bool more = co_await transfer_->Read(chunk);
  if (more) {
    // A daemon that sends more than the range has grown the file meanwhile, or ignores ranges.
    if (static_cast<int64_t>(chunk->size()) > left_) chunk->resize(static_cast<size_t>(left_));
    left_ -= static_cast<int64_t>(chunk->size());
    co_return true;
  }
  CO_RETURN_IF_ERROR(transfer_->result());
  co_return MakeError(ErrorReason::ERROR_REASON_OUTPUT_TRUNCATED,
                      "the file became shorter while it was read");
}

Task<absl::Status> FileReader::Open() {
  HttpRequest request = sandbox_.client.Request(sandbox_.context, *sandbox_.daemon, "GET",
                                                "/files/download?path=" + QueryEscape(path_),
                                                absl::InfiniteDuration());
  const bool whole = offset_ == 0 && left_ == info_.size;
  if (!whole) {
    request.headers.Set(
        "Range", "bytes=" + std::to_string(offset_) + "-" + std::to_string(offset_ + left_ - 1));
  }
  request.idle_timeout = kIdle;
  // A chunk ends with the block of curl's that filled it, of at most 16 KiB.
  request.chunk_bytes = kChunkBytes - 16 * 1024;
  request.max_chunks = 3;
  request.whole_chunks = true;
  const auto size = static_cast<size_t>(std::min<int64_t>(left_, 256 * 1024));
  request.receive_buffer = std::max<size_t>(16 * 1024, size);
  transfer_ = std::make_unique<Transfer>(sandbox_.client.http(), std::move(request));
  CO_ASSIGN_OR_RETURN(HttpHead head, co_await transfer_->Head());
  if (head.status == 206 || (head.status == 200 && offset_ == 0)) co_return absl::OkStatus();
  co_return co_await FailureOf(std::move(head));
}

Task<absl::Status> FileReader::FailureOf(HttpHead head) {
  if (head.status == 416) {
    co_return MakeError(ErrorReason::ERROR_REASON_OUTPUT_TRUNCATED,
                        "the file became shorter while it was read");
  }
  if (head.status == 200) {
    co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                        "the sandbox's daemon ignored a byte range");
  }
  HttpResponse response{head.status, std::move(head.headers), {}};
  absl::StatusOr<std::string> body = co_await transfer_->ReadAll(kMaxErrorBody);
  if (body.ok()) response.body = *std::move(body);
  co_return FileError(response, "read a file");
}

}  // namespace bridge
