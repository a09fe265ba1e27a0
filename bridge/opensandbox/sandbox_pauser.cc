// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_pauser.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/backoff.h"
#include "bridge/opensandbox/sandbox_access.h"
#include "bridge/opensandbox/sandbox_reader.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using R = ErrorReason;

constexpr absl::Duration kFirstPause = absl::Milliseconds(25);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
// What a call keeps of its deadline for its own answer.
constexpr absl::Duration kReserve = absl::Milliseconds(200);

// Refused, or failed, because it is there already, by us or by somebody else: the state tells.
bool StateMayTell(const absl::Status& failure) {
  return ReasonOf(failure) == R::ERROR_REASON_SANDBOX_NOT_RUNNING ||
         ReasonOf(failure) == R::ERROR_REASON_CONFLICT ||
         ReasonOf(failure) == R::ERROR_REASON_UPSTREAM_FAILED;
}

// The server says that the state is wrong and shows the right one.
absl::Status Contradiction(const absl::Status& failure, const SandboxRecord& record) {
  if (ReasonOf(failure) == R::ERROR_REASON_UPSTREAM_FAILED) return failure;
  return WithMetadata(MakeError(R::ERROR_REASON_CONFLICT,
                                fmt::format("sandbox {} is {} and yet: {}", record.id,
                                            DescribeState(record), std::string(failure.message()))),
                      "sandbox_id", record.id);
}

}  // namespace

Task<absl::StatusOr<Transition>> SandboxPauser::Pause(CallContext context, std::string sandbox_id,
                                                      std::string incarnation,
                                                      absl::Duration wait) {
  CO_ASSIGN_OR_RETURN(Reading reading,
                      co_await ReadSandbox(client_, context, sandbox_id, incarnation));
  bool already = reading.record.state == SandboxState::kPaused;
  if (reading.record.state == SandboxState::kRunning) {
    directories_.Forget(sandbox_id);
    const absl::Status asked = co_await client_.Pause(context, sandbox_id);
    if (!asked.ok()) {
      if (!StateMayTell(asked)) co_return asked;
      CO_ASSIGN_OR_RETURN(reading, co_await ReadSandbox(client_, context, sandbox_id, incarnation));
      already = reading.record.state == SandboxState::kPaused;
      if (reading.record.state == SandboxState::kRunning) {
        co_return Contradiction(asked, reading.record);
      }
      if (!already && reading.record.state != SandboxState::kPausing) {
        co_return NotRunning(reading.record);
      }
    }
  } else if (!already && reading.record.state != SandboxState::kPausing) {
    co_return NotRunning(reading.record);
  }
  if (already) {
    co_return Transition{.record = std::move(reading.record), .settled = true, .already = true};
  }
  absl::StatusOr<Transition> result = co_await AwaitPaused(context, sandbox_id, wait);
  directories_.Forget(sandbox_id);  // whoever asked meanwhile found what is frozen now
  co_return result;
}

Task<absl::StatusOr<Transition>> SandboxPauser::AwaitPaused(CallContext context,
                                                            std::string sandbox_id,
                                                            absl::Duration wait) {
  EventLoop& loop = client_.loop();
  const absl::Duration until = std::min(loop.Now() + wait, context.deadline - kReserve);
  Backoff pauses = Backoff::Steady(kFirstPause, kLongestPause);
  while (true) {
    CO_ASSIGN_OR_RETURN(Reading reading, co_await client_.Get(context, sandbox_id));
    const SandboxState state = reading.record.state;
    if (state == SandboxState::kPaused) {
      co_return Transition{.record = std::move(reading.record), .settled = true};
    }
    if (IsFinal(state) || state == SandboxState::kStopping) co_return NotRunning(reading.record);
    const absl::Duration pause = std::min(pauses.Next(), until - loop.Now());
    if (pause <= absl::ZeroDuration()) {
      co_return Transition{.record = std::move(reading.record), .settled = false};
    }
    const bool slept = co_await loop.Sleep(pause);
    if (!slept) {
      co_return MakeError(R::ERROR_REASON_CANCELLED, "cancelled while the sandbox was paused");
    }
  }
}

Task<absl::StatusOr<Transition>> SandboxPauser::Resume(CallContext context, std::string sandbox_id,
                                                       std::string incarnation,
                                                       absl::Duration wait) {
  CO_ASSIGN_OR_RETURN(Reading reading,
                      co_await ReadSandbox(client_, context, sandbox_id, incarnation));
  bool already = reading.record.state == SandboxState::kRunning;
  directories_.Forget(sandbox_id);
  if (reading.record.state == SandboxState::kPaused) {
    const absl::Status asked = co_await client_.Resume(context, sandbox_id);
    if (!asked.ok()) {
      if (!StateMayTell(asked)) co_return asked;
      CO_ASSIGN_OR_RETURN(reading, co_await ReadSandbox(client_, context, sandbox_id, incarnation));
      already = reading.record.state == SandboxState::kRunning;
      if (reading.record.state == SandboxState::kPaused) {
        co_return Contradiction(asked, reading.record);
      }
      if (!already && reading.record.state != SandboxState::kResuming) {
        co_return NotRunning(reading.record);
      }
    }
  } else if (!already && reading.record.state != SandboxState::kResuming) {
    co_return NotRunning(reading.record);
  }
  CO_ASSIGN_OR_RETURN(Transition result, co_await AwaitUsable(context, sandbox_id, wait));
  result.already = already;
  co_return result;
}

Task<absl::StatusOr<Transition>> SandboxPauser::AwaitUsable(CallContext context,
                                                            std::string sandbox_id,
                                                            absl::Duration wait) {
  EventLoop& loop = client_.loop();
  const absl::Duration until = std::min(loop.Now() + wait, context.deadline - kReserve);
  absl::StatusOr<SandboxRecord> record = co_await usable_.Wait(context, sandbox_id, until, wait);
  if (record.ok()) co_return Transition{.record = *std::move(record), .settled = true};
  if (ReasonOf(record.status()) != R::ERROR_REASON_READY_TIMEOUT) co_return record.status();
  CO_ASSIGN_OR_RETURN(Reading reading, co_await client_.Get(context, sandbox_id));
  co_return Transition{.record = std::move(reading.record), .settled = false};
}

}  // namespace bridge
