// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/file_methods.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "fmt/format.h"
#include "frontends/epp/convert.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/file_place.h"
#include "frontends/epp/record.h"

namespace bridge::epp {
namespace {

// A listing must leave room for its line's other members.
constexpr size_t kMaxEntriesBytes = kMaxLineBytes - 4096;

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
  if (!finished.ok() && !entries.too_many())
    co_return RefinedFileError(finished, request.sandbox_id());
  co_return entries.Result();
}

}  // namespace

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
  const absl::StatusOr<FilePlace> place = FilePlaceOf(call.params());
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
  const absl::StatusOr<FilePlace> place = FilePlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  v1::StatRequest request;
  request.set_sandbox_id(place->sandbox_id);
  request.set_path(place->path);
  const absl::StatusOr<v1::FileInfo> info =
      co_await CallUnary(call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncStat,
                         request, call.environment().call_timeout);
  if (!info.ok()) co_return RefinedFileError(info.status(), place->sandbox_id);
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
  const absl::StatusOr<FilePlace> place = FilePlaceOf(call.params());
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
  if (!made.ok()) co_return RefinedFileError(made.status(), place->sandbox_id);
  co_return Json{{"created", made->created()}};
}

Task<absl::StatusOr<Json>> RemoveFile(Call& call) {
  const absl::StatusOr<FilePlace> place = FilePlaceOf(call.params());
  if (!place.ok()) co_return place.status();
  v1::RemoveRequest request;
  request.set_sandbox_id(place->sandbox_id);
  request.set_path(place->path);
  request.set_recursive(true);
  const absl::StatusOr<v1::RemoveResponse> removed = co_await CallUnary(
      call.scope(), call.stubs().files, &v1::FileService::Stub::PrepareAsyncRemove,
      std::move(request), kTransferTimeout);
  if (!removed.ok()) co_return RefinedFileError(removed.status(), place->sandbox_id);
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
  if (!moved.ok()) co_return RefinedFileError(moved.status(), *id);
  co_return Json::object();
}

Task<absl::StatusOr<Json>> ChangeFileMode(Call& call) {
  const absl::StatusOr<FilePlace> place = FilePlaceOf(call.params());
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
  if (!info.ok()) co_return RefinedFileError(info.status(), place->sandbox_id);
  co_return FileEntry(*info);
}

}  // namespace bridge::epp
