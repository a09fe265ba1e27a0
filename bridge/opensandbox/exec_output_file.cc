// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_output_file.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"

namespace bridge {
namespace {

constexpr absl::Duration kIdle = absl::Seconds(30);
constexpr absl::Duration kLookLimit = absl::Seconds(5);
constexpr int64_t kUnknownRest = 64 * 1024;

// How large the whole file is of which an answer has a part, all, or nothing; -1: it does not say.
int64_t WholeSize(const HttpHead& head) {
  std::string_view text;
  if (head.status == 200) {
    text = head.headers.Get("Content-Length").value_or("");
  } else {  // "bytes 3-7/8", "bytes */8"
    text = head.headers.Get("Content-Range").value_or("");
    text.remove_prefix(std::min(text.size(), text.rfind('/') + 1));
  }
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size() && size >= 0 ? size : -1;
}

}  // namespace

void OutputFile::Skip() {
  skipped_ = true;
  download_.reset();
}

int64_t OutputFile::printed() const { return there_ ? std::max(seen_, offset_) : offset_ - begin_; }

absl::Status OutputFile::TakeSize(int64_t file_size) {
  const int64_t size = std::max<int64_t>(0, file_size - mark_size());
  there_ = true;
  size_ = size;
  seen_ = std::max(seen_, size);
  if (size >= offset_ && size == seen_) return absl::OkStatus();
  if (size < offset_ && attached_ && offset_ == begin_) {
    refused_ = true;
    return InvalidField(stream_ == StreamId::kStdout ? "stdout_offset" : "stderr_offset",
                        "lies ahead of the output");
  }
  lossy_ = true;  // the command cut its own output
  return absl::OkStatus();
}

HttpRequest OutputFile::Request(absl::Duration limit) const {
  return sandbox_.client.Request(sandbox_.context, *sandbox_.daemon, "GET",
                                 "/files/download?path=" + QueryEscape(path_), limit);
}

void OutputFile::Fetch() {
  HttpRequest request = Request(absl::InfiniteDuration());
  from_beginning_ = offset_ == 0;
  if (!from_beginning_) {
    request.headers.Set("Range", "bytes=" + std::to_string(offset_ + mark_size()) + "-");
  }
  request.idle_timeout = kIdle;
  request.chunk_bytes = kExecBatchBytes;
  request.max_chunks = 2;
  const int64_t rest = size_ > offset_ ? size_ - offset_ + mark_size() : kUnknownRest;
  request.receive_buffer = std::clamp<size_t>(static_cast<size_t>(rest), 16 * 1024, 256 * 1024);
  head_seen_ = false;
  beginning_.clear();
  download_ = std::make_unique<Transfer>(sandbox_.client.http(), std::move(request));
}

Task<absl::Status> OutputFile::Read(ExecBatch* batch, bool* absent) {
  if (!head_seen_) {
    absl::StatusOr<HttpHead> head = co_await download_->Head();
    absl::Status status = head.ok() ? TakeHead(*head, absent) : head.status();
    if (!status.ok()) {
      download_.reset();
      co_return status;
    }
    head_seen_ = true;
    if (head->status == 416 || head->status == 404) {
      download_.reset();
      co_return absl::OkStatus();
    }
  }
  std::string chunk;
  const bool more = co_await download_->Read(&chunk);
  if (more) {
    if (from_beginning_) {
      TakeBeginning(chunk, /*last=*/false, batch);
    } else {
      Deliver(std::move(chunk), batch);
    }
    co_return absl::OkStatus();
  }
  const absl::Status result = download_->result();
  download_.reset();
  if (result.ok() && from_beginning_) TakeBeginning("", /*last=*/true, batch);
  co_return result;
}

absl::Status OutputFile::TakeHead(const HttpHead& head, bool* absent) {
  if (head.status == 404) {
    *absent = true;
    return absl::OkStatus();
  }
  if (head.status == 206 || head.status == 416 || (head.status == 200 && from_beginning_)) {
    if (!from_beginning_) check_needed_ = true;
    const int64_t size = WholeSize(head);
    if (size >= 0) return TakeSize(size);
    there_ = true;
    return absl::OkStatus();
  }
  if (head.status == 200) {
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                     "the sandbox's daemon ignored a byte range");
  }
  return DaemonError({head.status, head.headers, {}}, "hand out an exec's output");
}

// Of a file that was cut what the command printed since then is all that there is.
void OutputFile::TakeBeginning(std::string_view bytes, bool last, ExecBatch* batch) {
  beginning_ += bytes;
  if (!last && beginning_.size() < mark_.size()) return;
  from_beginning_ = false;
  std::string begun = std::exchange(beginning_, {});
  if (begun.compare(0, mark_.size(), mark_) == 0) {
    unmarked_ = false;
    begun.erase(0, mark_.size());
  } else if (mark_.compare(0, begun.size(), begun) == 0) {
    unmarked_ = true;  // for now, perhaps: the shell may not have come so far
    return;
  } else {
    lossy_ = true;
    mark_.clear();
  }
  if (!begun.empty()) Deliver(std::move(begun), batch);
}

void OutputFile::Deliver(std::string bytes, ExecBatch* batch) {
  const auto size = static_cast<int64_t>(bytes.size());
  batch->outputs.push_back({stream_, std::move(bytes), offset_});
  offset_ += size;
  size_ = std::max(size_, offset_);
  seen_ = std::max(seen_, offset_);
}

Task<absl::Status> OutputFile::CheckMark() {
  if (!check_needed_ || skipped_ || lossy_ || mark_.empty()) co_return absl::OkStatus();
  HttpRequest request = Request(kLookLimit);
  request.headers.Set("Range", "bytes=0-" + std::to_string(mark_size() - 1));
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox_.client.Fetch(sandbox_.context, sandbox_.daemon,
                                                     std::move(request), 64 * 1024));
  if (response.status >= 500) co_return DaemonError(response, "hand out an exec's output");
  check_needed_ = false;
  lossy_ = response.body.compare(0, mark_.size(), mark_) != 0;
  co_return absl::OkStatus();
}

}  // namespace bridge
