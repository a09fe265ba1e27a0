// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_probe.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/opensandbox/sandbox_reader.h"

namespace bridge {
namespace {

using R = ErrorReason;

}  // namespace

Task<absl::StatusOr<Probe>> ProbeSandbox(LifecycleClient& client, DaemonFinder& finder,
                                         CallContext context, std::string sandbox_id,
                                         std::string incarnation, bool check_daemon) {
  absl::StatusOr<Reading> reading =
      co_await ReadSandbox(client, context, sandbox_id, std::move(incarnation));
  Probe probe;
  if (!reading.ok()) {
    const R reason = ReasonOf(reading.status());
    if (reason == R::ERROR_REASON_CANCELLED) co_return reading.status();
    probe.sight = reason == R::ERROR_REASON_SANDBOX_NOT_FOUND ? Probe::Sight::kNotFound
                                                              : Probe::Sight::kFailed;
    if (probe.sight == Probe::Sight::kFailed) probe.failure = reading.status();
    co_return probe;
  }
  probe.sight = Probe::Sight::kExists;
  probe.record = std::move(reading->record);
  if (!check_daemon) co_return probe;
  // Only a running sandbox has a daemon to ask; a paused one would take the request and keep it.
  if (probe.record.state != SandboxState::kRunning) {
    probe.daemon = Probe::Daemon::kSilent;
    co_return probe;
  }
  const absl::StatusOr<Endpoint> endpoint = co_await finder.Find(context, sandbox_id);
  if (endpoint.ok()) {
    probe.daemon = Probe::Daemon::kAnswers;
    co_return probe;
  }
  switch (ReasonOf(endpoint.status())) {
    case R::ERROR_REASON_CANCELLED:
      co_return endpoint.status();
    case R::ERROR_REASON_UPSTREAM_UNAUTHENTICATED:
    case R::ERROR_REASON_UPSTREAM_PERMISSION_DENIED: {
      // A daemon that refuses is there. The server's refusal says nothing about it.
      const auto metadata = MetadataOf(endpoint.status());
      const auto hop = metadata.find("hop");
      if (hop != metadata.end() && hop->second == "sandbox") probe.daemon = Probe::Daemon::kAnswers;
      co_return probe;
    }
    case R::ERROR_REASON_SANDBOX_UNREACHABLE:
    case R::ERROR_REASON_SANDBOX_NOT_FOUND:
      probe.daemon = Probe::Daemon::kSilent;
      co_return probe;
    default:  // nobody could ask it
      co_return probe;
  }
}

}  // namespace bridge
