// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/alias_folder.h"

#include <charconv>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/base/random.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr int64_t kMaxCopyBytes = int64_t{64} << 20;
constexpr absl::Duration kCleanUp = absl::Seconds(15);

using Made = absl::StatusOr<std::unique_ptr<AliasFolder>>;

}  // namespace

AliasFolder::AliasFolder(SandboxHandle sandbox)
    : sandbox_(std::move(sandbox)), alias_(sandbox_.capabilities->scratch, RandomHex(16)) {}

AliasFolder::~AliasFolder() {
  if (sandbox_.capabilities->scratch.empty()) return;
  sandbox_.background.Start(
      "remove an alias of a file",
      [sandbox = sandbox_.ForBackground(kCleanUp), alias = alias_]() -> Task<void> {
        (void)co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                                 RemoveAliasScript(alias), nullptr);
      });
}

Task<absl::Status> AliasFolder::Make(std::string script, std::string what) {
  CO_RETURN_IF_ERROR(sandbox_.capabilities->unprobed);
  if (sandbox_.capabilities->scratch.empty()) {
    co_return MakeError(ErrorReason::ERROR_REASON_PATH_REJECTED,
                        "to " + what +
                            " failed: this sandbox's daemon cannot reach the path by itself, and "
                            "nothing in the sandbox is writable to help it");
  }
  std::vector<std::string> lines;
  CO_ASSIGN_OR_RETURN(int code, co_await RunScript(sandbox_.client, sandbox_.context,
                                                   sandbox_.daemon, std::move(script), &lines));
  CO_RETURN_IF_ERROR(FileScriptError(code, what));
  if (lines.empty()) co_return absl::OkStatus();
  const char* end = lines[0].data() + lines[0].size();
  if (std::from_chars(lines[0].data(), end, size_).ec == std::errc()) co_return absl::OkStatus();
  co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                      "the sandbox's stat told a size that cannot be read");
}

Task<Made> AliasFolder::Link(SandboxHandle sandbox, std::string path) {
  std::unique_ptr<AliasFolder> folder(new AliasFolder(std::move(sandbox)));
  CO_RETURN_IF_ERROR(co_await folder->Make(LinkScript(folder->alias_, path), "reach a path"));
  co_return folder;
}

Task<Made> AliasFolder::Copy(SandboxHandle sandbox, std::string path) {
  std::unique_ptr<AliasFolder> folder(new AliasFolder(std::move(sandbox)));
  CO_RETURN_IF_ERROR(
      co_await folder->Make(CopyScript(folder->alias_, path, kMaxCopyBytes + 1), "read a file"));
  if (folder->size_ > kMaxCopyBytes) {
    co_return MakeError(ErrorReason::ERROR_REASON_FILE_TOO_LARGE,
                        "a file that does not tell its size is larger than 64 MiB, which is more "
                        "than can be read from it here");
  }
  co_return folder;
}

Task<Made> AliasFolder::List(SandboxHandle sandbox, std::string path, int depth) {
  std::unique_ptr<AliasFolder> folder(new AliasFolder(std::move(sandbox)));
  CO_RETURN_IF_ERROR(
      co_await folder->Make(ListScript(folder->alias_, path, depth), "list a directory"));
  co_return folder;
}

}  // namespace bridge
