// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_status.h"

#include <algorithm>
#include <string>

#include "bridge/base/error.h"

namespace bridge {
namespace {

constexpr int kSigKill = 9;
// The daemon's timer and ours start at different moments, a few milliseconds apart.
constexpr absl::Duration kTolerance = absl::Milliseconds(20);

}  // namespace

Outcome WithTimeout(Signalled signalled, absl::Duration timeout, absl::Duration ran_for) {
  const bool maybe = signalled.number == kSigKill || signalled.number == 0;
  if (!maybe || timeout == absl::InfiniteDuration() || ran_for + kTolerance < timeout) {
    return signalled;
  }
  return TimedOut{timeout};
}

std::optional<absl::Duration> RanFor(const CommandStatus& status) {
  if (status.started_at == absl::InfinitePast() || status.finished_at == absl::InfinitePast()) {
    return std::nullopt;
  }
  return std::max(status.finished_at - status.started_at, absl::ZeroDuration());
}

bool IsPausedState(std::string_view upstream_state) {
  return upstream_state == "Paused" || upstream_state == "Pausing" || upstream_state == "Resuming";
}

bool SaysPaused(const absl::Status& failure) {
  return ReasonOf(failure) == ErrorReason::ERROR_REASON_SANDBOX_NOT_RUNNING &&
         IsPausedState(MetadataOf(failure)["state"]);
}

bool IsSandboxOver(const absl::Status& failure) {
  const ErrorReason reason = ReasonOf(failure);
  if (reason == ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND) return true;
  if (reason != ErrorReason::ERROR_REASON_SANDBOX_NOT_RUNNING) return false;
  const std::string state = MetadataOf(failure)["state"];
  return state == "Failed" || state == "Terminated";
}

}  // namespace bridge
