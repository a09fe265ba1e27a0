// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/file_transfer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/base64.h"
#include "frontends/epp/convert.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/file_place.h"

namespace bridge::epp {
namespace {

constexpr int64_t kMaxOffset = std::numeric_limits<int64_t>::max();
constexpr size_t kWriteChunkBytes = 255 * 1024;  // a multiple of three
constexpr size_t kSmallFileBytes = 512 * 1024;

// --- read

// Around the content.
constexpr std::string_view kContent = "{\"content_b64\":\"";
constexpr std::string_view kEnd = "\"}";

struct ReadPlan {
  v1::ReadFileRequest request;
  bool part = false;       // offset or length was given
  int64_t most_bytes = 0;  // that the answer can hold
};

absl::StatusOr<ReadPlan> PlanRead(const Call& call) {
  ReadPlan plan;
  const Params params = call.params();
  ASSIGN_OR_RETURN(FilePlace place, FilePlaceOf(params));
  plan.request.set_sandbox_id(std::move(place.sandbox_id));
  plan.request.set_path(std::move(place.path));
  ASSIGN_OR_RETURN(const auto offset, params.Integer("offset", 0, kMaxOffset));
  ASSIGN_OR_RETURN(const auto length, params.Integer("length", 0, kMaxOffset));
  plan.part = offset.has_value() || length.has_value();
  if (plan.part) {
    plan.most_bytes = std::min(length.value_or(kMaxPartBytes), kMaxPartBytes);
    plan.request.set_offset(offset.value_or(0));
    plan.request.set_length(plan.most_bytes);
  } else {
    plan.most_bytes = static_cast<int64_t>(LargeResultCapacity(call.id(), kContent, kEnd) / 4 * 3);
  }
  return plan;
}

absl::Status TooLargeToRead(int64_t size, int64_t limit) {
  return TooLarge("the file", size, limit,
                  "read it in parts with offset and length, or by a command such as split");
}

// What follows the content of a part.
std::string PartMembers(const ReadPlan& plan, int64_t size, int64_t read) {
  const int64_t end = plan.request.offset() + read;
  // Fewer bytes than were asked for are the end, whatever the size: files of /proc have none, and
  // those of /sys say more than they have.
  const bool eof = read < plan.most_bytes || (size > 0 ? end >= size : read == 0);
  return fmt::format("\",\"size\":{},\"offset\":{},\"eof\":{}}}", size, plan.request.offset(), eof);
}

struct FileContent {
  std::string line;  // the answer, up to the end of the content
  int64_t size = 0;  // of the file
  int64_t read = 0;
};

Task<absl::StatusOr<FileContent>> FetchFile(Call& call, const ReadPlan& plan) {
  ServerStream<v1::ReadFileChunk> stream(call.scope(), kTransferTimeout);
  co_await stream.Start(call.stubs().files, &v1::FileService::Stub::PrepareAsyncReadFile,
                        plan.request);
  FileContent content;
  content.line = BeginLargeResult(call.id(), kContent);
  Base64Writer writer(&content.line);
  absl::Status refusal;
  v1::ReadFileChunk chunk;
  bool more = true;
  while (more) {
    more = co_await stream.Read(&chunk);
    if (!more) break;
    if (chunk.has_info()) {
      content.size = chunk.info().size_bytes();
      if (!plan.part && content.size > plan.most_bytes) {
        refusal = TooLargeToRead(content.size, plan.most_bytes);
      }
      const int64_t expected = std::min(content.size, plan.most_bytes);
      content.line.reserve(content.line.size() + static_cast<size_t>(expected + 2) / 3 * 4 + 128);
    }
    content.read += static_cast<int64_t>(chunk.data().size());
    if (content.read > plan.most_bytes) refusal = TooLargeToRead(-1, plan.most_bytes);
    if (!refusal.ok()) {
      stream.TryCancel();
      break;
    }
    writer.Append(chunk.data());
  }
  const absl::Status finished = co_await stream.Finish();
  if (!refusal.ok()) co_return refusal;
  if (!finished.ok()) co_return RefinedFileError(finished, plan.request.sandbox_id());
  writer.Finish();
  co_return content;
}

// --- write

absl::StatusOr<v1::WriteOptions> WriteOptionsOf(const Params& params, std::string path) {
  v1::WriteOptions options;
  options.set_path(std::move(path));
  options.set_create_parents(true);
  if (const Json* mode = params.Find("mode"); mode != nullptr) {
    ASSIGN_OR_RETURN(const uint32_t bits, ModeOf(*mode, "mode"));
    options.set_mode(bits);
  }
  return options;
}

Task<absl::StatusOr<v1::WriteFileResponse>> WriteSmall(Call& call, std::string sandbox_id,
                                                       v1::WriteOptions options, std::string data) {
  v1::WriteSmallFileRequest request;
  request.set_sandbox_id(std::move(sandbox_id));
  *request.mutable_options() = std::move(options);
  request.set_data(std::move(data));
  co_return co_await CallUnary(call.scope(), call.stubs().files,
                               &v1::FileService::Stub::PrepareAsyncWriteSmallFile,
                               std::move(request), kTransferTimeout);
}

Task<absl::StatusOr<v1::WriteFileResponse>> WriteLarge(Call& call, std::string sandbox_id,
                                                       v1::WriteOptions options,
                                                       const std::string& base64) {
  ClientStream<v1::WriteFileChunk, v1::WriteFileResponse> stream(call.scope(), kTransferTimeout);
  co_await stream.Start(call.stubs().files, &v1::FileService::Stub::PrepareAsyncWriteFile);
  v1::WriteFileChunk chunk;
  chunk.mutable_header()->set_sandbox_id(std::move(sandbox_id));
  *chunk.mutable_header()->mutable_options() = std::move(options);
  // A stream that we cut is then no file at all.
  chunk.mutable_header()->set_size_bytes(static_cast<int64_t>(Base64DecodedSize(base64)));
  Base64Reader reader(base64);
  bool open = co_await stream.Write(chunk);
  absl::Status bad;
  while (open) {
    absl::StatusOr<std::string> part = reader.Next(kWriteChunkBytes);
    if (!part.ok()) bad = InvalidField("content_b64", "is not base64");
    if (!part.ok() || part->empty()) break;
    chunk.set_data(*std::move(part));
    open = co_await stream.Write(chunk);
  }
  const absl::StatusOr<v1::WriteFileResponse> written = co_await stream.Finish(bad.ok());
  if (!bad.ok()) co_return bad;
  co_return written;
}

}  // namespace

Task<void> ReadFile(Call& call) {
  const absl::StatusOr<ReadPlan> plan = PlanRead(call);
  if (!plan.ok()) {
    call.Error(plan.status());
    co_return;
  }
  absl::StatusOr<FileContent> content = co_await FetchFile(call, *plan);
  if (!content.ok()) {
    call.Error(content.status());
    co_return;
  }
  const std::string end =
      plan->part ? PartMembers(*plan, content->size, content->read) : std::string(kEnd);
  call.Answer(EndLargeResult(call.id(), std::move(content->line), end));
}

Task<absl::StatusOr<Json>> WriteFile(Call& call) {
  absl::StatusOr<FilePlace> place = FilePlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  absl::StatusOr<v1::WriteOptions> options = WriteOptionsOf(call.params(), place->path);
  if (!options.ok()) co_return options.status();
  const Json* content = call.params().Find("content_b64");
  if (content == nullptr || !content->is_string()) {
    co_return ProtocolError(kInvalidParams, "content_b64: must be text");
  }
  const std::string& base64 = content->get_ref<const std::string&>();
  absl::StatusOr<v1::WriteFileResponse> written = absl::UnknownError("");
  if (Base64DecodedSize(base64) <= kSmallFileBytes) {
    absl::StatusOr<std::string> data = Base64Reader(base64).Next(kSmallFileBytes + 3);
    if (!data.ok()) co_return InvalidField("content_b64", "is not base64");
    written = co_await WriteSmall(call, place->sandbox_id, *std::move(options), *std::move(data));
  } else {
    written = co_await WriteLarge(call, place->sandbox_id, *std::move(options), base64);
  }
  if (!written.ok()) co_return RefinedFileError(written.status(), place->sandbox_id);
  co_return Json{{"size", written->size_bytes()}, {"sha256", written->sha256()}};
}

}  // namespace bridge::epp
