// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_writer.h"

#include "bridge/base/error.h"
#include "bridge/base/shell.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "bridge/opensandbox/file_codec.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/file_script.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr size_t kMaxAnswer = 64 * 1024;
// Neither side moved a byte: the client is slow or the sandbox is paused. Ours does not count.
constexpr absl::Duration kIdle = absl::Seconds(60);
constexpr absl::Duration kCleanUp = absl::Seconds(15);
// How long a failure waits for it to be told; it goes on then.
constexpr absl::Duration kPatience = absl::Seconds(2);
// How fast a sandbox with little of a processor reads a file for its digest.
constexpr int64_t kDigestBytesPerSecond = 10 << 20;

HttpRequest Upload(const SandboxHandle& sandbox, std::string_view method,
                   const std::string& target) {
  HttpRequest request = sandbox.client.Request(sandbox.context, *sandbox.daemon, method, target,
                                               absl::InfiniteDuration());
  request.upload = true;
  request.idle_timeout = kIdle;
  request.resend = Resend::kNever;
  return request;
}

HttpRequest OwnRequest(const SandboxHandle& sandbox, const FileWrite& write) {
  std::string target = "/v1/file?path=" + QueryEscape(write.path);
  if (write.mode) target += "&mode=" + OctalDigits(*write.mode);
  if (!write.owner.empty()) target += "&owner=" + QueryEscape(write.owner);
  if (!write.group.empty()) target += "&group=" + QueryEscape(write.group);
  if (write.create_parents) target += "&parents=1";
  if (write.no_follow) target += "&symlink=refuse";
  if (!write.atomic) target += "&atomic=0";
  if (write.if_absent) target += "&if_absent=1";
  if (!write.if_sha256.empty()) target += "&if_sha256=" + write.if_sha256;
  if (write.if_modified_at != absl::InfinitePast()) {
    target += "&if_modified_at=" + QueryEscape(TimeText(write.if_modified_at));
  }
  if (!write.expected_sha256.empty()) target += "&sha256=" + write.expected_sha256;
  // Announced here and not as a Content-Length: the daemon is to judge a body of another length and
  // clean up before it answers, where HTTP would have the connection cut.
  if (write.size) target += "&size=" + std::to_string(*write.size);
  HttpRequest request = Upload(sandbox, "PUT", target);
  request.headers.Set("Content-Type", "application/octet-stream");
  return request;
}

// The mode that the daemon is to set. Absent: it leaves an existing temporary as it is.
std::optional<unsigned> UploadMode(const FileWrite& write, const std::optional<FileInfo>& keep,
                                   bool atomic) {
  if (atomic) return std::nullopt;  // the commit sets it
  if (write.mode) return write.mode;
  return keep ? std::nullopt : std::optional<unsigned>(0644);
}

HttpRequest StockRequest(const SandboxHandle& sandbox, const FileWrite& write,
                         const MultipartUpload& upload) {
  HttpRequest request = Upload(sandbox, "POST", "/files/upload");
  request.headers.Set("Content-Type", upload.content_type());
  if (write.size) {
    request.upload_bytes = *write.size + static_cast<int64_t>(upload.preamble().size()) +
                           static_cast<int64_t>(upload.epilogue().size());
  }
  return request;
}

// The daemon's answer to an upload; not OK when there is none, with the reason why.
Task<absl::StatusOr<HttpResponse>> AwaitAnswer(const SandboxHandle& sandbox, Transfer& transfer) {
  absl::StatusOr<HttpHead> head = co_await transfer.Head();
  absl::Status failure = head.status();
  HttpResponse response;
  if (head.ok()) {
    response = {head->status, std::move(head->headers), {}};
    absl::StatusOr<std::string> body = co_await transfer.ReadAll(kMaxAnswer);
    failure = body.status();
    if (body.ok()) response.body = *std::move(body);
  }
  if (failure.ok()) co_return response;
  co_return co_await sandbox.client.Explained(sandbox.context, sandbox.daemon, std::move(failure));
}

}  // namespace

absl::Status DigestMismatch() {
  return MakeError(ErrorReason::ERROR_REASON_PRECONDITION_FAILED,
                   "the content is not what expected_sha256 says; nothing was changed",
                   {.field = "options.expected_sha256"});
}

absl::Status SizeMismatch(int64_t expected, int64_t actual) {
  return MakeError(ErrorReason::ERROR_REASON_PRECONDITION_FAILED,
                   "the content has " + std::to_string(actual) + " bytes and not the " +
                       std::to_string(expected) + " that were announced; nothing was changed",
                   {.field = "header.size_bytes"});
}

// ---- Our own daemon

OwnFileWriter::OwnFileWriter(SandboxHandle sandbox, FileWrite write)
    : sandbox_(std::move(sandbox)),
      write_(std::move(write)),
      transfer_(sandbox_.client.http(), OwnRequest(sandbox_, write_)) {}

Task<absl::Status> OwnFileWriter::Send(std::string_view bytes) {
  const bool taken = co_await transfer_.Send(bytes);
  if (taken) co_return absl::OkStatus();
  co_return co_await Refusal();
}

// The daemon answered before it had everything, or is gone.
Task<absl::Status> OwnFileWriter::Refusal() {
  CO_ASSIGN_OR_RETURN(HttpResponse response, co_await AwaitAnswer(sandbox_, transfer_));
  if (response.status == 200) {
    co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                        "the sandbox's daemon called a write done before its end");
  }
  co_return WithoutDirectory(OwnFileError(response, "write a file"), "write a file");
}

Task<absl::StatusOr<FileWritten>> OwnFileWriter::Finish() {
  transfer_.CloseSend();
  CO_ASSIGN_OR_RETURN(HttpResponse response, co_await AwaitAnswer(sandbox_, transfer_));
  if (response.status != 200)
    co_return WithoutDirectory(OwnFileError(response, "write a file"), "write a file");
  co_return ParseFileWritten(response.body, write_.path);
}

// ---- A stock daemon

StockFileWriter::StockFileWriter(SandboxHandle sandbox, FileWrite write, std::string target,
                                 std::optional<FileInfo> keep, std::string temporary,
                                 UploadPlace place)
    : sandbox_(std::move(sandbox)),
      write_(std::move(write)),
      target_(std::move(target)),
      keep_(std::move(keep)),
      temporary_(std::move(temporary)),
      place_(std::move(place)),
      upload_(place_.path, UploadMode(write_, keep_, !temporary_.empty())),
      transfer_(sandbox_.client.http(), StockRequest(sandbox_, write_, upload_)) {}

StockFileWriter::~StockFileWriter() {
  std::string script = CleanUpScript();
  if (script.empty()) return;
  sandbox_.background.Start(
      "remove what was half written",
      [sandbox = sandbox_.ForBackground(kCleanUp), script = std::move(script)]() -> Task<void> {
        (void)co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon, script, nullptr);
      });
}

std::string StockFileWriter::CleanUpScript() const {
  std::string script;
  if (settled_) return script;
  if (!temporary_.empty()) script = "rm -f " + ShellQuote(temporary_) + "\n";
  if (!made_parents_.empty()) script += RemoveParentsScript(directory_, made_parents_);
  return script;
}

// Of a call that comes next, the parents that it finds are somebody else's, and would stay.
Task<void> StockFileWriter::RemoveParents() {
  if (made_parents_.empty()) co_return;
  const auto clean_up = [this]() -> Task<void> {
    const absl::StatusOr<int> code = co_await RunScript(sandbox_.client, sandbox_.context,
                                                        sandbox_.daemon, CleanUpScript(), nullptr);
    settled_ = code.ok();
  };
  (void)co_await RunWithin(sandbox_.loop(), kPatience, clean_up);
}

Task<absl::Status> StockFileWriter::Prepare(std::string directory, bool missing, bool reserve) {
  directory_ = std::move(directory);
  if (missing) {
    std::vector<std::string> lines;
    CO_ASSIGN_OR_RETURN(int code,
                        co_await RunScript(sandbox_.client, sandbox_.context, sandbox_.daemon,
                                           MakeParentsScript(directory_), &lines));
    CO_RETURN_IF_ERROR(FileScriptError(code, "write a file"));
    if (!lines.empty()) made_parents_ = lines[0];
  }
  if (!reserve) co_return absl::OkStatus();
  const absl::StatusOr<int> code = co_await RunScript(
      sandbox_.client, sandbox_.context, sandbox_.daemon, ReserveScript(temporary_), nullptr);
  const absl::Status status = code.ok() ? FileScriptError(*code, "write a file") : code.status();
  if (!status.ok()) co_await RemoveParents();
  co_return status;
}

Task<absl::Status> StockFileWriter::SendAll(std::string_view bytes) {
  const bool taken = co_await transfer_.Send(bytes);
  if (taken) co_return absl::OkStatus();
  const absl::Status result = co_await UploadResult();
  if (!result.ok()) co_return result;
  co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                      "the sandbox's daemon called an upload done before its end");
}

Task<absl::Status> StockFileWriter::UploadResult() {
  CO_ASSIGN_OR_RETURN(HttpResponse response, co_await AwaitAnswer(sandbox_, transfer_));
  if (response.status == 200) co_return absl::OkStatus();
  co_return FileError(response, "write a file");
}

Task<absl::Status> StockFileWriter::Send(std::string_view bytes) {
  if (!begun_) {
    begun_ = true;
    CO_RETURN_IF_ERROR(co_await SendAll(upload_.preamble()));
  }
  if (write_.size && size_ + static_cast<int64_t>(bytes.size()) > *write_.size) {
    co_return SizeMismatch(*write_.size, size_ + static_cast<int64_t>(bytes.size()));
  }
  digest_.Update(bytes);
  size_ += static_cast<int64_t>(bytes.size());
  if (bytes.empty()) co_return absl::OkStatus();
  co_return co_await SendAll(bytes);
}

absl::Status StockFileWriter::CheckContent(const std::string& digest) const {
  if (write_.size && size_ != *write_.size) return SizeMismatch(*write_.size, size_);
  if (!write_.expected_sha256.empty() && digest != write_.expected_sha256) return DigestMismatch();
  return absl::OkStatus();
}

Task<absl::StatusOr<FileWritten>> StockFileWriter::Finish() {
  CO_RETURN_IF_ERROR(co_await Send(std::string_view()));
  const std::string digest = digest_.FinishHex();
  CO_RETURN_IF_ERROR(CheckContent(digest));
  CO_RETURN_IF_ERROR(co_await SendAll(upload_.epilogue()));
  transfer_.CloseSend();
  absl::Status status = co_await UploadResult();
  if (status.ok()) status = co_await Commit();
  if (!status.ok()) {
    co_await RemoveParents();
    co_return status;
  }
  settled_ = true;
  FileWritten written{size_, digest, !temporary_.empty()};
  if (target_ != write_.path) written.symlink_followed = EscapeNonUtf8(target_);
  co_return written;
}

Task<absl::Status> StockFileWriter::Commit() {
  std::string script;
  absl::Duration limit = kScriptLimit;
  if (!temporary_.empty()) {
    if (keep_ && !write_.if_sha256.empty()) {
      limit += absl::Seconds(keep_->size / kDigestBytesPerSecond);
    }
    script = CommitScript(write_, temporary_, target_, keep_);
  } else if (!write_.owner.empty() || !write_.group.empty()) {
    AttributeChange change{.mode = write_.mode, .owner = write_.owner, .group = write_.group};
    script = SetAttributesScript(target_, change);
  } else {
    co_return absl::OkStatus();
  }
  CO_ASSIGN_OR_RETURN(int code,
                      co_await RunScript(sandbox_.client, sandbox_.context, sandbox_.daemon,
                                         std::move(script), nullptr, limit));
  const absl::Status status = FileScriptError(code, "write a file");
  if (write_.if_absent && ReasonOf(status) == ErrorReason::ERROR_REASON_PATH_EXISTS) {
    co_return MakeError(ErrorReason::ERROR_REASON_PRECONDITION_FAILED,
                        "something is at the path; nothing was changed");
  }
  co_return status;
}

}  // namespace bridge
