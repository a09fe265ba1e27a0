// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_own.h"

#include <utility>

#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_codec.h"
#include "bridge/opensandbox/file_error.h"

namespace bridge {
namespace {

// As a script of the bridge's.
constexpr absl::Duration kLimit = absl::Seconds(10);
constexpr size_t kMaxAnswer = 64 * 1024;

Task<absl::StatusOr<HttpResponse>> Post(SandboxHandle sandbox, std::string target) {
  HttpRequest request =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "POST", target, kLimit);
  // A move that was done is no longer there to be done again.
  request.resend = Resend::kNever;
  co_return co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(request),
                                          kMaxAnswer);
}

}  // namespace

Task<absl::StatusOr<std::optional<bool>>> MoveOwn(SandboxHandle sandbox, FileMove move) {
  std::string target = "/v1/file/move?source=" + QueryEscape(move.source) +
                       "&destination=" + QueryEscape(move.destination);
  if (move.overwrite) target += "&overwrite=1";
  if (move.create_parents) target += "&parents=1";
  CO_ASSIGN_OR_RETURN(HttpResponse response, co_await Post(sandbox, std::move(target)));
  if (response.status == 200) {
    CO_ASSIGN_OR_RETURN(bool replaced, ParseFileMoved(response.body));
    co_return std::optional<bool>(replaced);
  }
  if (OwnDaemonCannotMove(response)) co_return std::optional<bool>();
  co_return OwnFileError(response, "move a path");
}

Task<absl::StatusOr<FileInfo>> SetAttributesOwn(SandboxHandle sandbox, std::string path,
                                                AttributeChange change) {
  std::string target = "/v1/file/attributes?path=" + QueryEscape(path);
  if (change.follow_symlink) target += "&follow=1";
  if (change.mode) target += "&mode=" + OctalDigits(*change.mode);
  if (!change.owner.empty()) target += "&owner=" + QueryEscape(change.owner);
  if (!change.group.empty()) target += "&group=" + QueryEscape(change.group);
  if (change.modified_at != absl::InfinitePast()) {
    target += "&modified_at=" + QueryEscape(TimeText(change.modified_at));
  }
  CO_ASSIGN_OR_RETURN(HttpResponse response, co_await Post(sandbox, std::move(target)));
  if (response.status != 200) co_return OwnFileError(response, "change a path's attributes");
  FileInfo info;
  CO_RETURN_IF_ERROR(ParseOwnFileInfo(response.body, &info));
  info.path = std::move(path);
  co_return info;
}

}  // namespace bridge
