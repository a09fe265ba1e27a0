// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/file_methods.h"

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/convert.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/file_place.h"
#include "frontends/epp/record.h"

namespace bridge::epp {
namespace {

constexpr std::string_view kBeginning = "{\"entries\":[";
constexpr std::string_view kEnd = "]}";

// The answer's line with the entries that came so far. Text from the start: as values, the entries
// that fill a line would take ten times its memory.
class Listing {
 public:
  explicit Listing(std::string_view id)
      : line_(BeginLargeResult(id, kBeginning)), room_(LargeResultCapacity(id, kBeginning, kEnd)) {}

  void Add(const v1::FileInfoBatch& batch) {
    for (const v1::FileInfo& info : batch.entries()) {
      if (too_many_) return;
      Add(Dump(FileEntry(info)));
    }
  }
  bool too_many() const { return too_many_; }
  absl::Status Refusal() const {
    return MakeError(ErrorReason::ERROR_REASON_FILE_TOO_LARGE,
                     fmt::format("too many entries for one answer: more than {} fill its {} bytes; "
                                 "list a directory below, or use a command such as find",
                                 count_, kMaxLineBytes));
  }
  std::string TakeLine(std::string_view id) && {
    return EndLargeResult(id, std::move(line_), kEnd);
  }

 private:
  void Add(const std::string& entry) {
    const size_t bytes = entry.size() + (count_ > 0 ? 1 : 0);
    too_many_ = bytes > room_;
    if (too_many_) return;
    if (count_ > 0) line_ += ',';
    line_ += entry;
    room_ -= bytes;
    ++count_;
  }

  std::string line_;
  size_t room_;  // for more entries
  int64_t count_ = 0;
  bool too_many_ = false;
};

template <class Request>
Task<absl::StatusOr<std::string>> CollectEntries(
    Call& call,
    std::unique_ptr<grpc::ClientAsyncReader<v1::FileInfoBatch>> (v1::FileService::Stub::*prepare)(
        grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
    absl::StatusOr<Request> request) {
  if (!request.ok()) co_return request.status();
  ServerStream<v1::FileInfoBatch> stream(call.scope(), kTransferTimeout);
  co_await stream.Start(call.stubs().files, prepare, *request);
  Listing listing(call.id());
  v1::FileInfoBatch batch;
  bool more = true;
  while (more) {
    more = co_await stream.Read(&batch);
    if (more) listing.Add(batch);
    if (listing.too_many()) {
      stream.TryCancel();
      break;
    }
  }
  const absl::Status finished = co_await stream.Finish();
  if (listing.too_many()) co_return listing.Refusal();
  if (!finished.ok()) co_return RefinedFileError(finished, request->sandbox_id());
  co_return std::move(listing).TakeLine(call.id());
}

void Answer(Call& call, absl::StatusOr<std::string> line) {
  if (line.ok()) {
    call.Answer(*std::move(line));
  } else {
    call.Error(line.status());
  }
}

absl::StatusOr<v1::ListDirectoryRequest> MakeListRequest(const Params& params) {
  v1::ListDirectoryRequest request;
  ASSIGN_OR_RETURN(*request.mutable_sandbox_id(), params.NonEmptyText("sandbox_id"));
  ASSIGN_OR_RETURN(*request.mutable_path(), params.Text("path", "/"));
  if (request.path().empty()) return InvalidField("path", "must not be empty");
  ASSIGN_OR_RETURN(const auto depth, params.Integer("depth", -1, 1'000'000));
  request.set_depth(static_cast<int32_t>(depth.value_or(1)));
  return request;
}

absl::StatusOr<v1::SearchRequest> MakeSearchRequest(const Params& params) {
  ASSIGN_OR_RETURN(FilePlace place, FilePlaceOf(params));
  v1::SearchRequest request;
  ASSIGN_OR_RETURN(*request.mutable_pattern(), params.Text("pattern", "**"));
  ASSIGN_OR_RETURN(const auto most,
                   params.Integer("max_results", 0, std::numeric_limits<int32_t>::max()));
  request.set_sandbox_id(std::move(place.sandbox_id));
  request.set_path(std::move(place.path));
  request.set_max_results(static_cast<int32_t>(most.value_or(0)));
  return request;
}

}  // namespace

Task<void> ListFiles(Call& call) {
  Answer(call, co_await CollectEntries(call, &v1::FileService::Stub::PrepareAsyncListDirectory,
                                       MakeListRequest(call.params())));
}

Task<void> SearchFiles(Call& call) {
  Answer(call, co_await CollectEntries(call, &v1::FileService::Stub::PrepareAsyncSearch,
                                       MakeSearchRequest(call.params())));
}

// There is nothing where the link leads; another failure says nothing about that.
bool LeadsNowhere(const absl::Status& status) {
  const ErrorReason reason = ReasonOf(status);
  return reason == ErrorReason::ERROR_REASON_PATH_NOT_FOUND ||
         reason == ErrorReason::ERROR_REASON_PATH_REJECTED ||
         reason == ErrorReason::ERROR_REASON_NOT_A_DIRECTORY ||
         reason == ErrorReason::ERROR_REASON_PERMISSION_DENIED;
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
  if (!target.ok() && LeadsNowhere(target.status())) co_return FileEntry(*info);
  if (!target.ok()) co_return RefinedFileError(target.status(), place->sandbox_id);
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
