// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_socket.h"

#include <optional>
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/opensandbox/endpoint.h"

namespace bridge {
namespace {

constexpr absl::Duration kSmallLimit = absl::Seconds(10);
constexpr int kHandoverTries = 5;
constexpr absl::Duration kHandoverPause = absl::Milliseconds(50);
constexpr absl::Duration kGoodbye = absl::Seconds(2);
constexpr absl::Duration kShortGoodbye = absl::Milliseconds(100);
constexpr uint16_t kNormal = 1000;

Task<absl::Status> Refused(SandboxHandle sandbox, std::optional<HttpResponse> refusal,
                           absl::Status failure) {
  if (!refusal) {
    co_return co_await sandbox.client.directory().Explain(
        sandbox.context, sandbox.daemon->sandbox_id, std::move(failure));
  }
  if (refusal->status == 404) co_return UnknownProcess();
  if (refusal->status == 409) co_return AlreadyAttached();
  co_return DaemonError(*refusal, "attach to a process");
}

}  // namespace

absl::Status AlreadyAttached() {
  return MakeError(ErrorReason::ERROR_REASON_ALREADY_ATTACHED, "another client holds the process");
}

Task<absl::StatusOr<std::unique_ptr<WebSocket>>> OpenProcessSocket(SandboxHandle sandbox,
                                                                   ProcessKey key, int64_t since,
                                                                   bool takeover) {
  const std::string url = WebSocketUrl(sandbox.daemon->endpoint.url) + "/pty/" +
                          QueryEscape(key.session) + "/ws?pty=" + (key.terminal ? "1" : "0") +
                          "&since=" + std::to_string(since) + (takeover ? "&takeover=1" : "");
  // The same headers as any request to the daemon.
  const HttpRequest like =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "GET", "/", kSmallLimit);
  // The holder before us may have let go a moment ago, and the daemon not have noticed yet.
  absl::Status status;
  for (int attempt = 0; attempt < kHandoverTries; ++attempt) {
    auto socket = std::make_unique<WebSocket>(sandbox.client.http());
    status = co_await socket->Connect(url, like.headers);
    if (status.ok()) co_return socket;
    status = co_await Refused(sandbox, socket->refusal(), std::move(status));
    if (ReasonOf(status) != ErrorReason::ERROR_REASON_ALREADY_ATTACHED) break;
    const bool slept = co_await sandbox.loop().Sleep(kHandoverPause);
    if (!slept) break;
  }
  co_return status;
}

void LetGoOfProcess(const SandboxHandle& sandbox, std::unique_ptr<WebSocket> socket, bool stuck) {
  const absl::Duration patience = stuck ? kShortGoodbye : kGoodbye;
  sandbox.background.Start(
      "let go of a process",
      [&loop = sandbox.loop(), patience,
       socket = std::shared_ptr<WebSocket>(std::move(socket))]() -> Task<void> {
        const bool orderly = co_await RunWithin(loop, patience, [&socket]() -> Task<void> {
          bool more = co_await socket->Close(kNormal, "");
          WebSocketMessage ignored;
          while (more) more = co_await socket->Read(&ignored);
        });
        if (!orderly) socket->ResetWhenDropped();
      });
}

}  // namespace bridge
