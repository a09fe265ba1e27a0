// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_cleanup.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/opensandbox/file_codec.h"

namespace bridge {
namespace {

// The leader may be gone; members of its group that ignored SIGTERM may not be. `patience`: how
// long to wait for the command's shell to write down which group it is.
Task<void> KillGroup(SandboxHandle sandbox, ExecFolder folder, absl::Duration patience) {
  constexpr absl::Duration kPause = absl::Milliseconds(100);
  const absl::Duration until = sandbox.loop().Now() + patience;
  bool again = true;
  while (again) {
    const absl::StatusOr<int> code = co_await RunScript(
        sandbox.client, sandbox.context, sandbox.daemon, SignalScript(folder, 9), nullptr);
    if (code.ok() && *code != kSignalNoRecord) co_return;
    again = sandbox.loop().Now() < until;
    if (again) again = co_await sandbox.loop().Sleep(kPause);
  }
}

}  // namespace

Task<void> KillRemoteCommand(SandboxHandle sandbox, std::shared_ptr<RemoteCommand> command,
                             std::optional<ExecFolder> folder, bool stdin_uploaded) {
  // Cut before its id was known: the id comes within milliseconds, and without it nobody can kill.
  constexpr absl::Duration kIdPatience = absl::Seconds(5);
  if (command->id().empty() && !command->refused()) {
    (void)co_await RunWithin(sandbox.loop(), kIdPatience,
                             [&command]() -> Task<void> { (void)co_await command->AwaitId(); });
  }
  if (!command->id().empty() && !command->ended()) {
    absl::Status status =
        co_await InterruptCommand(sandbox.client, sandbox.context, sandbox.daemon, command->id());
    if (!status.ok()) {
      (void)co_await sandbox.loop().Sleep(absl::Seconds(1));
      (void)co_await InterruptCommand(sandbox.client, sandbox.context, sandbox.daemon,
                                      command->id());
    }
  }
  if (folder) {
    co_await KillGroup(sandbox, *folder, command->id().empty() ? kIdPatience : absl::Duration());
    co_await RemoveExecFolder(sandbox, *folder, stdin_uploaded);
  }
}

Task<void> NoteCut(SandboxHandle sandbox, ExecFolder folder) {
  constexpr absl::Duration kLimit = absl::Seconds(5);
  constexpr unsigned kOwnersAlone = 0700;
  HttpRequest request =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "POST", "/directories", kLimit);
  request.headers.Set("Content-Type", "application/json");
  request.body = MakeDirectoryJson(folder.cut(), kOwnersAlone);
  request.resend = Resend::kAlways;  // twice is as once
  (void)co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(request), 4096);
}

Task<void> RemoveExecFolder(SandboxHandle sandbox, ExecFolder folder, bool stdin_uploaded) {
  constexpr absl::Duration kLimit = absl::Seconds(5);
  HttpRequest request =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "DELETE",
                             "/directories?path=" + QueryEscape(folder.path()), kLimit);
  (void)co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(request), 4096);
  if (!stdin_uploaded) co_return;
  HttpRequest input =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "DELETE",
                             "/files?path=" + QueryEscape(folder.uploaded_stdin()), kLimit);
  (void)co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(input), 4096);
}

}  // namespace bridge
