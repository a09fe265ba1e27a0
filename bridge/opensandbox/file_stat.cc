// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_stat.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_codec.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/file_script.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr absl::Duration kSmallLimit = absl::Seconds(10);
constexpr size_t kMaxSmallBody = 256 * 1024;

using Lines = std::vector<std::string>;

// A text with line breaks comes as several lines.
std::string Joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

Task<absl::StatusOr<HttpResponse>> Ask(SandboxHandle sandbox, std::string target) {
  HttpRequest request =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "GET", target, kSmallLimit);
  co_return co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(request),
                                          kMaxSmallBody);
}

Task<absl::StatusOr<FileInfo>> StatOwn(SandboxHandle sandbox, std::string path, bool follow) {
  const std::string target =
      "/v1/file/info?path=" + QueryEscape(path) + (follow ? "&follow=1" : "");
  CO_ASSIGN_OR_RETURN(HttpResponse response, co_await Ask(sandbox, target));
  if (response.status != 200) co_return OwnFileError(response, "describe a path");
  FileInfo info;
  CO_RETURN_IF_ERROR(ParseOwnFileInfo(response.body, &info));
  info.path = std::move(path);
  co_return info;
}

Task<absl::StatusOr<FileInfo>> StatByScript(SandboxHandle sandbox, std::string path) {
  Lines lines;
  CO_RETURN_IF_ERROR(co_await RunFileScript(sandbox, StatScript(path), "describe a path", &lines));
  co_return ParseStatLines(lines, path);
}

Task<absl::StatusOr<FileInfo>> StatStock(SandboxHandle sandbox, std::string path) {
  if (!RoutesTakeLiterally(path)) co_return co_await StatByScript(sandbox, path);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await Ask(sandbox, "/files/info?path=" + QueryEscape(path)));
  if (response.status != 200) co_return FileError(response, "describe a path");
  CO_ASSIGN_OR_RETURN(FileInfo info, ParseFileInfoOf(response.body, path));
  // Size and mode are no evidence of what it is.
  if (!info.type_known) co_return co_await StatByScript(sandbox, path);
  co_return info;
}

}  // namespace

Task<absl::Status> RunFileScript(SandboxHandle sandbox, std::string script, std::string what,
                                 Lines* lines) {
  CO_ASSIGN_OR_RETURN(int code, co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                                                   std::move(script), lines));
  co_return FileScriptError(code, what);
}

Task<absl::StatusOr<FileInfo>> StatFile(SandboxHandle sandbox, std::string path, bool follow) {
  if (sandbox.capabilities->file_read) co_return co_await StatOwn(sandbox, path, follow);
  CO_ASSIGN_OR_RETURN(FileInfo info, co_await StatStock(sandbox, path));
  if (!follow || info.type != FileType::kSymlink) co_return info;
  CO_ASSIGN_OR_RETURN(std::string target, co_await ResolveLinks(sandbox, path));
  CO_ASSIGN_OR_RETURN(info, co_await StatStock(sandbox, target));
  info.path = std::move(path);
  co_return info;
}

Task<std::string> LinkTarget(SandboxHandle sandbox, std::string path) {
  Lines lines;
  const absl::Status read =
      co_await RunFileScript(sandbox, ReadLinkScript(path), "read a link", &lines);
  co_return read.ok() ? Joined(lines) : std::string();
}

Task<absl::StatusOr<std::string>> ResolveLinks(SandboxHandle sandbox, std::string path) {
  Lines lines;
  CO_RETURN_IF_ERROR(co_await RunFileScript(sandbox, ResolveScript(path), "follow a link", &lines));
  std::string target = Joined(lines);
  if (target.empty() || target[0] != '/') {
    co_return MakeError(ErrorReason::ERROR_REASON_PATH_NOT_FOUND,
                        "to follow a link failed: it leads nowhere");
  }
  co_return target;
}

}  // namespace bridge
