// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/file_methods.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/base64.h"
#include "frontends/epp/convert.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/record.h"

namespace bridge::epp {
namespace {

constexpr int64_t kMaxOffset = std::numeric_limits<int64_t>::max();
constexpr size_t kWriteChunkBytes = 255 * 1024;  // a multiple of three
constexpr size_t kSmallFileBytes = 512 * 1024;
// A listing must leave room for its line's other members.
constexpr size_t kMaxEntriesBytes = kMaxLineBytes - 4096;
constexpr absl::Duration kTransferTimeout = absl::Minutes(14);

// What every method of files.* begins with.
struct Place {
  std::string sandbox_id;
  std::string path;
};

absl::StatusOr<Place> PlaceOf(const Params& params) {
  Place place;
  ASSIGN_OR_RETURN(place.sandbox_id, params.NonEmptyText("sandbox_id"));
  ASSIGN_OR_RETURN(place.path, params.NonEmptyText("path"));
  return place;
}

absl::Status Refined(const absl::Status& failure, const std::string& sandbox_id) {
  return IsUnknownSandbox(failure) ? UnknownSandbox(sandbox_id) : failure;
}

// --- read

struct ReadPlan {
  v1::ReadFileRequest request;
  bool part = false;       // offset or length was given
  int64_t most_bytes = 0;  // that the answer can hold
};

absl::StatusOr<ReadPlan> PlanRead(const Call& call) {
  ReadPlan plan;
  const Params params = call.params();
  ASSIGN_OR_RETURN(Place place, PlaceOf(params));
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
    plan.most_bytes =
        static_cast<int64_t>(LargeResultCapacity(call.id(), "content_b64", "") / 4 * 3);
  }
  return plan;
}

absl::Status TooLargeToRead(int64_t size, int64_t limit) {
  return TooLarge("the file", size, limit,
                  "read it in parts with offset and length, or by a command such as split");
}

std::string PartMembers(const ReadPlan& plan, int64_t size, int64_t read) {
  const int64_t end = plan.request.offset() + read;
  // Files of /proc have no size: there only an empty read is the end.
  const bool eof = size > 0 ? end >= size : read < plan.most_bytes || read == 0;
  return fmt::format(",\"size\":{},\"offset\":{},\"eof\":{}", size, plan.request.offset(), eof);
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
  content.line = BeginLargeResult(call.id(), "content_b64");
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
  if (!finished.ok()) co_return Refined(finished, plan.request.sandbox_id());
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

// --- listings

// Entries that came so far, with the size of their line.
class Entries {
 public:
  void Add(const v1::FileInfoBatch& batch) {
    for (const v1::FileInfo& info : batch.entries()) {
      ++count_;
      if (too_many()) continue;
      Json entry = FileEntry(info);
      bytes_ += entry.dump(-1, ' ', false, Json::error_handler_t::replace).size() + 1;
      list_.push_back(std::move(entry));
    }
  }
  bool too_many() const { return bytes_ > kMaxEntriesBytes; }
  absl::StatusOr<Json> Result() {
    if (too_many()) {
      return MakeError(
          ErrorReason::ERROR_REASON_FILE_TOO_LARGE,
          fmt::format("too many entries for one answer: the first {} have more than {} "
                      "bytes; list a directory below, or use a command such as find",
                      list_.size(), kMaxEntriesBytes));
    }
    return Json{{"entries", std::move(list_)}};
  }

 private:
  Json list_ = Json::array();
  size_t bytes_ = 0;
  int64_t count_ = 0;
};

template <class Request>
Task<absl::StatusOr<Json>> CollectEntries(
    Call& call,
    std::unique_ptr<grpc::ClientAsyncReader<v1::FileInfoBatch>> (v1::FileService::Stub::*prepare)(
        grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
    Request request) {
  ServerStream<v1::FileInfoBatch> stream(call.scope(), kTransferTimeout);
  co_await stream.Start(call.stubs().files, prepare, request);
  Entries entries;
  v1::FileInfoBatch batch;
  bool more = true;
  while (more) {
    more = co_await stream.Read(&batch);
    if (more) entries.Add(batch);
    if (entries.too_many()) {
      stream.TryCancel();
      break;
    }
  }
  const absl::Status finished = co_await stream.Finish();
  if (!finished.ok() && !entries.too_many()) co_return Refined(finished, request.sandbox_id());
  co_return entries.Result();
}

}  // namespace

absl::StatusOr<uint32_t> ModeOf(const Json& value, std::string_view field) {
  constexpr int64_t kMaxMode = 07777;
  if (!value.is_string()) {
    ASSIGN_OR_RETURN(const int64_t bits, AsInteger(value, field, 0, kMaxMode));
    return static_cast<uint32_t>(bits);
  }
  std::string_view text = value.get_ref<const std::string&>();
  if (text.starts_with("0o")) text.remove_prefix(2);
  uint32_t bits = 0;
  const char* end = text.data() + text.size();
  const auto [ptr, ec] = std::from_chars(text.data(), end, bits, 8);
  if (text.empty() || ec != std::errc() || ptr != end || bits > kMaxMode) {
    return InvalidField(field, "must be permission bits, as octal text such as \"0644\"");
  }
  return bits;
}

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
  const std::string rest = plan->part ? PartMembers(*plan, content->size, content->read) : "";
  call.Answer(EndLargeResult(call.id(), std::move(content->line), rest));
}

Task<absl::StatusOr<Json>> WriteFile(Call& call) {
  absl::StatusOr<Place> place = PlaceOf(call.params());
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
  if (!written.ok()) co_return Refined(written.status(), place->sandbox_id);
  co_return Json{{"size", written->size_bytes()}, {"sha256", written->sha256()}};
}

Task<absl::StatusOr<Json>> ListFiles(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  const absl::StatusOr<std::string> path = call.params().Text("path", "/");
  if (!path.ok()) co_return path.status();
  if (path->empty()) co_return InvalidField("path", "must not be empty");
  const auto depth = call.params().Integer("depth", -1, 1'000'000);
  if (!depth.ok()) co_return depth.status();
  v1::ListDirectoryRequest request;
  request.set_sandbox_id(*id);
  request.set_path(*path);
  request.set_depth(static_cast<int32_t>(depth->value_or(1)));
  co_return co_await CollectEntries(call, &v1::FileService::Stub::PrepareAsyncListDirectory,
                                    std::move(request));
}

Task<absl::StatusOr<Json>> SearchFiles(Call& call) {
  const absl::StatusOr<Place> place = PlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  const absl::StatusOr<std::string> pattern = call.params().Text("pattern", "**");
  if (!pattern.ok()) co_return pattern.status();
  const auto most = call.params().Integer("max_results", 0, std::numeric_limits<int32_t>::max());
  if (!most.ok()) co_return most.status();
  v1::SearchRequest request;
  request.set_sandbox_id(place->sandbox_id);
  request.set_path(place->path);
  request.set_pattern(*pattern);
  request.set_max_results(static_cast<int32_t>(most->value_or(0)));
  co_return co_await CollectEntries(call, &v1::FileService::Stub::PrepareAsyncSearch,
                                    std::move(request));
}

// Describes what a link points to, as programs see it, and says that it is one. A link to nothing
// is described itself.
Task<absl::StatusOr<Json>> StatFile(Call& call) {
  const absl::StatusOr<Place> place = PlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  v1::StatRequest request;
  request.set_sandbox_id(place->sandbox_id);
  request.set_path(place->path);
  const absl::StatusOr<v1::FileInfo> info =
      co_await CallUnary(call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncStat,
                         request, call.environment().call_timeout);
  if (!info.ok()) co_return Refined(info.status(), place->sandbox_id);
  if (info->type() != v1::FILE_TYPE_SYMLINK) co_return FileEntry(*info);
  request.set_follow_symlink(true);
  absl::StatusOr<v1::FileInfo> target =
      co_await CallUnary(call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncStat,
                         request, call.environment().call_timeout);
  if (!target.ok()) co_return FileEntry(*info);
  target->set_path(info->path());
  target->set_symlink_target(info->symlink_target());
  co_return FileEntry(*target);
}

Task<absl::StatusOr<Json>> MakeDirectory(Call& call) {
  const absl::StatusOr<Place> place = PlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  v1::MakeDirectoryRequest request;
  request.set_sandbox_id(place->sandbox_id);
  request.set_path(place->path);
  request.set_parents(true);
  if (const Json* mode = call.params().Find("mode"); mode != nullptr) {
    const absl::StatusOr<uint32_t> bits = ModeOf(*mode, "mode");
    if (!bits.ok()) co_return bits.status();
    request.set_mode(*bits);
  }
  const absl::StatusOr<v1::MakeDirectoryResponse> made = co_await CallUnary(
      call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncMakeDirectory,
      std::move(request), call.environment().call_timeout);
  if (!made.ok()) co_return Refined(made.status(), place->sandbox_id);
  co_return Json{{"created", made->created()}};
}

Task<absl::StatusOr<Json>> RemoveFile(Call& call) {
  const absl::StatusOr<Place> place = PlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  v1::RemoveRequest request;
  request.set_sandbox_id(place->sandbox_id);
  request.set_path(place->path);
  request.set_recursive(true);
  const absl::StatusOr<v1::RemoveResponse> removed = co_await CallUnary(
      call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncRemove,
      std::move(request), kTransferTimeout);
  if (!removed.ok()) co_return Refined(removed.status(), place->sandbox_id);
  co_return Json::object();
}

// Never over something else: what is there would be lost without a word.
Task<absl::StatusOr<Json>> MoveFile(Call& call) {
  const Params params = call.params();
  const absl::StatusOr<std::string> id = params.NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  const absl::StatusOr<std::string> source = params.NonEmptyText("source");
  if (!source.ok()) co_return source.status();
  const absl::StatusOr<std::string> destination = params.NonEmptyText("destination");
  if (!destination.ok()) co_return destination.status();
  const absl::StatusOr<bool> overwrite = params.Bool("overwrite", false);
  if (!overwrite.ok()) co_return overwrite.status();
  v1::MoveRequest request;
  request.set_sandbox_id(*id);
  request.set_source(*source);
  request.set_destination(*destination);
  request.set_overwrite(*overwrite);
  request.set_create_parents(true);
  const absl::StatusOr<v1::MoveResponse> moved =
      co_await CallUnary(call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncMove,
                         std::move(request), call.environment().call_timeout);
  if (!moved.ok()) co_return Refined(moved.status(), *id);
  co_return Json::object();
}

Task<absl::StatusOr<Json>> ChangeFileMode(Call& call) {
  const absl::StatusOr<Place> place = PlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  const Json* value = call.params().Find("mode");
  const absl::StatusOr<uint32_t> mode = ModeOf(value == nullptr ? Json() : *value, "mode");
  if (!mode.ok()) co_return mode.status();
  v1::SetAttributesRequest request;
  request.set_sandbox_id(place->sandbox_id);
  request.set_path(place->path);
  request.set_mode(*mode);
  const absl::StatusOr<v1::FileInfo> info = co_await CallUnary(
      call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncSetAttributes,
      std::move(request), call.environment().call_timeout);
  if (!info.ok()) co_return Refined(info.status(), place->sandbox_id);
  co_return FileEntry(*info);
}

}  // namespace bridge::epp
