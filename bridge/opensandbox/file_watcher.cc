// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_watcher.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/json.h"

namespace bridge {
namespace {

using Json = nlohmann::json;
using Kind = FileChange::Kind;

constexpr size_t kMaxErrorBody = 64 * 1024;
// A path, twice: as text and as base64, for both ends of a move.
constexpr size_t kMaxLine = 64 * 1024;
// A daemon that says nothing for so long beyond its heartbeat is not there any more.
constexpr absl::Duration kGrace = absl::Seconds(30);

struct Word {
  std::string_view text;
  Kind kind;
};
constexpr Word kWords[] = {
    {"ready", Kind::kReady},       {"created", Kind::kCreated},
    {"modified", Kind::kModified}, {"attributes", Kind::kAttributes},
    {"deleted", Kind::kDeleted},   {"moved", Kind::kMoved},
    {"overflow", Kind::kOverflow}, {"heartbeat", Kind::kKeepalive},
};

HttpRequest WatchRequest(const SandboxHandle& sandbox, const std::string& path, bool recursive,
                         absl::Duration keepalive) {
  std::string target = "/v1/watch?path=" + QueryEscape(path);
  if (recursive) target += "&recursive=1";
  target += "&heartbeat_ms=" + std::to_string(absl::ToInt64Milliseconds(keepalive));
  HttpRequest request =
      sandbox.client.EndlessRequest(sandbox.context, *sandbox.daemon, "GET", target);
  request.idle_timeout = keepalive + kGrace;
  return request;
}

absl::Status Unreadable() {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's daemon told a change in a way that cannot be read");
}

std::string TextOf(const Json& object, const char* name) {
  const auto text = object.find(name);
  return text != object.end() && text->is_string() ? text->get<std::string>() : std::string();
}

// The exact bytes of `name`; and whether they are text.
std::string BytesOf(const Json& object, const std::string& name, bool* is_text) {
  const std::string base64 = TextOf(object, (name + "_b64").c_str());
  std::string bytes;
  *is_text = base64.empty() || !absl::Base64Unescape(base64, &bytes);
  return *is_text ? TextOf(object, name.c_str()) : bytes;
}

std::optional<FileType> TypeOf(std::string_view name) {
  if (name == "file") return FileType::kFile;
  if (name == "directory") return FileType::kDirectory;
  if (name == "symlink") return FileType::kSymlink;
  if (name == "other") return FileType::kOther;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<FileChange> ParseFileChange(std::string_view line) {
  const Json object = ParseJson(line);
  if (!object.is_object()) return Unreadable();
  const std::string event = TextOf(object, "event");
  if (event == "gone") {
    return MakeError(ErrorReason::ERROR_REASON_PATH_NOT_FOUND,
                     "the watched directory was removed, moved or unmounted");
  }
  if (event == "error") {
    const auto error = object.find("error");
    constexpr int kNoStatus = 200;  // the answer's own: it had begun well
    return OwnFileError({kNoStatus, {}, error == object.end() ? "{}" : error->dump()},
                        "watch a directory");
  }
  FileChange change;
  bool known = false;
  for (const Word& word : kWords) {
    if (event != word.text) continue;
    change.kind = word.kind;
    known = true;
  }
  if (!known) return Unreadable();
  bool is_text = true;
  const std::string bytes = BytesOf(object, "path", &is_text);
  change.path = is_text ? bytes : EscapeNonUtf8(bytes);
  if (!is_text) change.path_bytes = bytes;
  change.old_path = EscapeNonUtf8(BytesOf(object, "old_path", &is_text));
  change.type = TypeOf(TextOf(object, "type"));
  return change;
}

FileWatcher::FileWatcher(SandboxHandle sandbox, const std::string& path, bool recursive,
                         absl::Duration keepalive)
    : sandbox_(std::move(sandbox)),
      transfer_(sandbox_.client.http(), WatchRequest(sandbox_, path, recursive, keepalive)) {}

Task<absl::Status> FileWatcher::Begin() {
  absl::StatusOr<HttpHead> head = co_await transfer_.Head();
  if (!head.ok()) {
    co_return co_await sandbox_.client.Explained(sandbox_.context, sandbox_.daemon, head.status());
  }
  if (head->status == 200) co_return absl::OkStatus();
  HttpResponse response = AnswerOf(*std::move(head));
  absl::StatusOr<std::string> body = co_await transfer_.ReadAll(kMaxErrorBody);
  if (body.ok()) response.body = *std::move(body);
  co_return OwnFileError(response, "watch a directory");
}

Task<absl::StatusOr<std::vector<FileChange>>> FileWatcher::Next() {
  std::vector<FileChange> changes;
  while (changes.empty()) {
    CO_RETURN_IF_ERROR(end_);
    const bool more = co_await transfer_.Read(&chunk_);
    if (!more) {
      CO_RETURN_IF_ERROR(co_await sandbox_.client.Explained(sandbox_.context, sandbox_.daemon,
                                                            transfer_.result()));
      co_return MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                          "the sandbox's daemon ended the watch; watch again and list again");
    }
    buffer_ += chunk_;
    end_ = TakeLines(&changes);
  }
  co_return changes;
}

absl::Status FileWatcher::TakeLines(std::vector<FileChange>* changes) {
  size_t begin = 0;
  for (size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    absl::StatusOr<FileChange> change =
        ParseFileChange(std::string_view(buffer_).substr(begin, end - begin));
    if (!change.ok()) return change.status();
    changes->push_back(*std::move(change));
  }
  buffer_.erase(0, begin);
  return buffer_.size() > kMaxLine ? Unreadable() : absl::OkStatus();
}

}  // namespace bridge
