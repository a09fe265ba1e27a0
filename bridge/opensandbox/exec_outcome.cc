// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_outcome.h"

#include <string>
#include <utility>
#include <variant>

#include "bridge/opensandbox/exec_status.h"

namespace bridge {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(10);

Task<bool> Exists(const SandboxHandle& sandbox, std::string path) {
  HttpRequest request = sandbox.client.Request(sandbox.context, *sandbox.daemon, "GET",
                                               "/files/info?path=" + QueryEscape(path), kLimit);
  const absl::StatusOr<HttpResponse> response =
      co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(request), 64 * 1024);
  co_return response.ok() && response->status == 200;
}

}  // namespace

Task<Outcome> ResolveOutcome(SandboxHandle sandbox, ExecFolder folder, Outcome said,
                             absl::Duration timeout, absl::Duration ran_for) {
  if (const auto* signalled = std::get_if<Signalled>(&said)) {
    const Signalled by = *signalled;
    bool ours = by.number != 0 && co_await Exists(sandbox, folder.sent(by.number));
    if (!ours) ours = co_await Exists(sandbox, folder.cut());
    if (ours) co_return CancelledEnd{true, by};
    co_return WithTimeout(by, timeout, ran_for);
  }
  const auto* exit = std::get_if<ExitCode>(&said);
  if (exit == nullptr || (exit->code != 126 && exit->code != 127)) co_return said;
  const absl::StatusOr<std::string> marker =
      co_await sandbox.client.ReadSmallFile(sandbox.context, sandbox.daemon, folder.failed(), 64);
  if (marker.ok()) co_return OutcomeOfFailedStart(*marker);
  co_return said;
}

}  // namespace bridge
