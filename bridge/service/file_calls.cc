// SPDX-License-Identifier: Apache-2.0
//
// The calls that are one question and one answer; the streams are in file_streams.cc.
#include "bridge/service/file_calls.h"

#include <string.h>

#include <algorithm>
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/sha256.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_script.h"
#include "bridge/service/file_convert.h"
#include "bridge/service/target.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

// Of a file whose text is to be replaced: it is held in memory.
constexpr int64_t kMaxReplaceBytes = int64_t{16} << 20;

absl::Status TooLarge(std::string_view what, int64_t size, int64_t limit) {
  return MakeError(
      ErrorReason::ERROR_REASON_FILE_TOO_LARGE,
      std::string(what) + " of " + std::to_string(size) +
          " bytes is more than this call carries (" + std::to_string(limit) + ")",
      {.metadata = {{"size_bytes", std::to_string(size)}, {"limit_bytes", std::to_string(limit)}}});
}

// A file of more than `limit` bytes is FILE_TOO_LARGE, whatever size it claims to have.
Task<absl::StatusOr<std::string>> ReadAll(FileReader& reader, int64_t limit) {
  std::string all, chunk;
  bool more = true;
  while (more) {
    CO_ASSIGN_OR_RETURN(more, co_await reader.Next(&chunk));
    if (more) all += chunk;
    const auto size = static_cast<int64_t>(all.size());
    if (size > limit) co_return TooLarge("a file", std::max(size, reader.info().size), limit);
  }
  co_return all;
}

// Writes a whole content and describes what is there then.
Task<absl::Status> WriteAll(FileClient& files, CallContext context, SandboxTarget target,
                            FileWrite write, const std::string& content,
                            v1::WriteFileResponse& response) {
  const std::string path = write.path;
  write.size = static_cast<int64_t>(content.size());
  CO_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> writer,
                      co_await files.Write(context, target, std::move(write)));
  CO_RETURN_IF_ERROR(co_await writer->Send(content));
  CO_ASSIGN_OR_RETURN(FileWritten written, co_await writer->Finish());
  response.set_size_bytes(written.size);
  response.set_sha256(written.sha256);
  response.set_atomic(written.atomic);
  response.set_symlink_followed(written.symlink_followed);
  CO_ASSIGN_OR_RETURN(FileInfo info, co_await files.Stat(context, target, path, true));
  FileInfoToProto(info, response.mutable_info());
  co_return absl::OkStatus();
}

// A file whose text is to be replaced.
Task<absl::StatusOr<std::string>> ReadToReplace(FileClient& files, CallContext context,
                                                SandboxTarget target, std::string path,
                                                bool no_follow) {
  if (no_follow) {
    // Reading follows a link, and what it leads to must not decide what is answered.
    CO_ASSIGN_OR_RETURN(FileInfo there, co_await files.Stat(context, target, path, false));
    if (there.type == FileType::kSymlink) co_return IsALink("replace text");
  }
  CO_ASSIGN_OR_RETURN(std::unique_ptr<FileReader> reader,
                      co_await files.Read(context, target, path, 0, std::nullopt));
  if (reader->info().size > kMaxReplaceBytes) {
    co_return TooLarge("a file", reader->info().size, kMaxReplaceBytes);
  }
  co_return co_await ReadAll(*reader, kMaxReplaceBytes);
}

// As string::find, but never slower than the text is long, whatever the word is: string::find looks
// at "aaa…" for "aaa…b" again and again, for hours, and the loop is everybody's.
size_t Find(std::string_view text, std::string_view word, size_t from) {
  const void* found = memmem(text.data() + from, text.size() - from, word.data(), word.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

int64_t CountOf(std::string_view text, std::string_view word) {
  int64_t count = 0;
  size_t at = 0;
  while ((at = Find(text, word, at)) != std::string_view::npos) {
    at += word.size();
    ++count;
  }
  return count;
}

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  size_t at = 0;
  while (true) {
    const size_t found = Find(text, from, at);
    result.append(text.substr(at, found - at));
    if (found == std::string_view::npos) return result;
    result.append(to);
    at = found + from.size();
  }
}

}  // namespace

Task<absl::Status> HandleStat(FileClient& files, Unary& call, const v1::StatRequest& request,
                              v1::FileInfo& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, PathFromProto("path", request.path()));
  call.set_waiting_for("the file's description");
  absl::StatusOr<FileInfo> info = co_await files.Stat(call.context(), std::move(target),
                                                      std::move(path), request.follow_symlink());
  if (!info.ok()) co_return About(request, info.status());
  FileInfoToProto(*info, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleReadSmallFile(FileClient& files, Unary& call,
                                       const v1::ReadSmallFileRequest& request,
                                       v1::ReadSmallFileResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, PathFromProto("path", request.path()));
  if (request.offset() < 0) co_return InvalidField("offset", "must not be negative");
  if (request.has_length() && request.length() < 0) {
    co_return InvalidField("length", "must not be negative");
  }
  if (request.length() > kMaxSmallFileBytes) {
    co_return InvalidField("length", "must be at most 1 MiB here; use ReadFile");
  }
  std::optional<int64_t> length;
  if (request.has_length()) length = request.length();
  call.set_waiting_for("the file's content");
  absl::StatusOr<std::unique_ptr<FileReader>> reader = co_await files.Read(
      call.context(), std::move(target), std::move(path), request.offset(), length);
  if (!reader.ok()) co_return About(request, reader.status());
  const int64_t wanted = (*reader)->info().size - request.offset();
  if (!length && wanted > kMaxSmallFileBytes) {
    co_return About(request, TooLarge("a file", wanted, kMaxSmallFileBytes));
  }
  absl::StatusOr<std::string> content = co_await ReadAll(**reader, kMaxSmallFileBytes);
  if (!content.ok()) co_return About(request, content.status());
  FileInfoToProto((*reader)->info(), response.mutable_info());
  response.set_data(*std::move(content));
  co_return absl::OkStatus();
}

Task<absl::Status> HandleWriteSmallFile(FileClient& files, Unary& call,
                                        const v1::WriteSmallFileRequest& request,
                                        v1::WriteFileResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(FileWrite write, WriteFromProto("options", request.options()));
  const auto size = static_cast<int64_t>(request.data().size());
  if (size > kMaxSmallFileBytes) co_return TooLarge("content", size, kMaxSmallFileBytes);
  call.set_waiting_for("the file to be written");
  const absl::Status status = co_await WriteAll(files, call.context(), std::move(target),
                                                std::move(write), request.data(), response);
  co_return About(request, status);
}

Task<absl::Status> HandleMakeDirectory(FileClient& files, Unary& call,
                                       const v1::MakeDirectoryRequest& request,
                                       v1::MakeDirectoryResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, PathFromProto("path", request.path()));
  DirectoryMake make{.parents = request.parents()};
  if (request.has_mode()) {
    CO_RETURN_IF_ERROR(CheckMode("mode", request.mode()));
    make.mode = request.mode();
  }
  CO_RETURN_IF_ERROR(CheckOwner("owner", request.owner()));
  CO_RETURN_IF_ERROR(CheckOwner("group", request.group()));
  make.owner = request.owner();
  make.group = request.group();
  call.set_waiting_for("the directory to be made");
  absl::StatusOr<bool> created = co_await files.MakeDirectory(call.context(), std::move(target),
                                                              std::move(path), std::move(make));
  if (!created.ok()) co_return About(request, created.status());
  response.set_created(*created);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleRemove(FileClient& files, Unary& call, const v1::RemoveRequest& request,
                                v1::RemoveResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, ChangeablePathFromProto("path", request.path()));
  call.set_waiting_for("the path to be removed");
  const absl::Status status = co_await files.Remove(call.context(), std::move(target),
                                                    std::move(path), request.recursive());
  if (ReasonOf(status) == ErrorReason::ERROR_REASON_PATH_NOT_FOUND && request.missing_ok()) {
    co_return absl::OkStatus();
  }
  response.set_removed(status.ok());
  co_return About(request, status);
}

Task<absl::Status> HandleMove(FileClient& files, Unary& call, const v1::MoveRequest& request,
                              v1::MoveResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string source, ChangeablePathFromProto("source", request.source()));
  CO_ASSIGN_OR_RETURN(std::string destination,
                      ChangeablePathFromProto("destination", request.destination()));
  if (destination == source || destination.rfind(source + "/", 0) == 0) {
    co_return InvalidField("destination", "must not be the source or lie in it");
  }
  call.set_waiting_for("the path to be moved");
  FileMove move{.source = std::move(source),
                .destination = std::move(destination),
                .overwrite = request.overwrite(),
                .create_parents = request.create_parents()};
  absl::StatusOr<bool> replaced =
      co_await files.Move(call.context(), std::move(target), std::move(move));
  if (!replaced.ok()) co_return About(request, replaced.status());
  response.set_replaced(*replaced);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleSetAttributes(FileClient& files, Unary& call,
                                       const v1::SetAttributesRequest& request,
                                       v1::FileInfo& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, ChangeablePathFromProto("path", request.path()));
  AttributeChange change{.owner = request.owner(),
                         .group = request.group(),
                         .follow_symlink = request.follow_symlink()};
  CO_RETURN_IF_ERROR(CheckOwner("owner", request.owner()));
  CO_RETURN_IF_ERROR(CheckOwner("group", request.group()));
  if (request.has_mode()) {
    CO_RETURN_IF_ERROR(CheckMode("mode", request.mode()));
    change.mode = request.mode();
  }
  if (request.has_modified_at()) {
    CO_ASSIGN_OR_RETURN(change.modified_at, CheckTimestamp("modified_at", request.modified_at()));
  }
  call.set_waiting_for("the attributes to be set");
  absl::StatusOr<FileInfo> info = co_await files.SetAttributes(call.context(), std::move(target),
                                                               std::move(path), std::move(change));
  if (!info.ok()) co_return About(request, info.status());
  FileInfoToProto(*info, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleReplaceText(FileClient& files, Unary& call,
                                     const v1::ReplaceTextRequest& request,
                                     v1::ReplaceTextResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(std::string path, ChangeablePathFromProto("path", request.path()));
  if (request.old_text().empty()) co_return InvalidField("old_text", "must not be empty");
  if (request.has_expected_count() && request.expected_count() < 0) {
    co_return InvalidField("expected_count", "must not be negative");
  }
  call.set_waiting_for("the file's content");
  const absl::StatusOr<std::string> content =
      co_await ReadToReplace(files, call.context(), target, path, request.no_follow());
  if (!content.ok()) co_return About(request, content.status());
  const int64_t count = CountOf(*content, request.old_text());
  if (request.has_expected_count() && request.expected_count() != count) {
    co_return About(request, MakeError(ErrorReason::ERROR_REASON_PRECONDITION_FAILED,
                                       "the text occurs " + std::to_string(count) +
                                           " times; nothing was changed"));
  }
  response.set_count(count);
  if (count == 0) co_return absl::OkStatus();
  // Known before it is made: a small request may ask for more than there is memory.
  const int64_t grows = static_cast<int64_t>(request.new_text().size()) -
                        static_cast<int64_t>(request.old_text().size());
  const int64_t size = static_cast<int64_t>(content->size()) + count * grows;
  if (size > kMaxReplaceBytes) {
    co_return About(request, TooLarge("a result", size, kMaxReplaceBytes));
  }
  // Of what was read. A time would not do: two changes within a tick of the clock have the same.
  Sha256 digest;
  digest.Update(*content);
  call.set_waiting_for("the file to be written");
  // Whoever writes between our read and our write is not overwritten.
  FileWrite write{
      .path = std::move(path), .if_sha256 = digest.FinishHex(), .no_follow = request.no_follow()};
  const std::string result = Replaced(*content, request.old_text(), request.new_text());
  v1::WriteFileResponse written;
  const absl::Status status = co_await WriteAll(files, call.context(), std::move(target),
                                                std::move(write), result, written);
  response.set_symlink_followed(written.symlink_followed());
  if (ReasonOf(status) == ErrorReason::ERROR_REASON_PRECONDITION_FAILED) {
    co_return About(request, MakeError(ErrorReason::ERROR_REASON_CONFLICT,
                                       "somebody else changed the file at the same time; nothing "
                                       "was replaced, and the same call may succeed now"));
  }
  co_return About(request, status);
}

}  // namespace bridge
