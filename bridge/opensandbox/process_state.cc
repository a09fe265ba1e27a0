// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_state.h"

#include <charconv>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/process_id.h"

namespace bridge {
namespace {

constexpr absl::Duration kSmallLimit = absl::Seconds(10);
constexpr size_t kMaxSmallBody = 64 * 1024;

Task<absl::StatusOr<bool>> IsThere(SandboxHandle sandbox, std::string path) {
  const absl::StatusOr<std::string> text = co_await sandbox.client.ReadSmallFile(
      sandbox.context, sandbox.daemon, std::move(path), kMaxSmallBody);
  if (ReasonOf(text.status()) == ErrorReason::ERROR_REASON_PATH_NOT_FOUND) co_return false;
  if (!text.ok()) co_return text.status();
  co_return true;
}

}  // namespace

Task<absl::StatusOr<PtyState>> FetchPtyState(SandboxHandle sandbox, std::string session) {
  HttpRequest request = sandbox.client.Request(sandbox.context, *sandbox.daemon, "GET",
                                               "/pty/" + QueryEscape(session), kSmallLimit);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon,
                                                    std::move(request), kMaxSmallBody));
  if (response.status == 404) co_return UnknownProcess();
  if (response.status != 200) co_return DaemonError(response, "describe a process");
  co_return ParsePtyState(response.body);
}

Task<absl::StatusOr<bool>> WasProcessStarted(SandboxHandle sandbox, std::string folder) {
  return IsThere(std::move(sandbox), folder + "/s");
}

Task<absl::StatusOr<bool>> IsProcessRunning(SandboxHandle sandbox, std::string folder) {
  return IsThere(std::move(sandbox), folder + "/p");
}

Task<absl::StatusOr<int>> FetchProcessMarks(SandboxHandle sandbox, std::string folder) {
  absl::StatusOr<std::string> text = co_await sandbox.client.ReadSmallFile(
      sandbox.context, sandbox.daemon, folder + "/n", kMaxSmallBody);
  if (ReasonOf(text.status()) == ErrorReason::ERROR_REASON_PATH_NOT_FOUND) co_return 0;
  if (!text.ok()) co_return text.status();
  int marks = 0;
  (void)std::from_chars(text->data(), text->data() + text->size(), marks);
  co_return marks;
}

}  // namespace bridge
