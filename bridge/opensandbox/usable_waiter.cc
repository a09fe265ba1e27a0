// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/usable_waiter.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/backoff.h"
#include "bridge/opensandbox/error_body.h"
#include "bridge/opensandbox/sandbox_access.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using R = ErrorReason;

constexpr absl::Duration kFirstPause = absl::Milliseconds(25);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
// Of one read.
constexpr absl::Duration kReadTimeout = absl::Seconds(5);
// A record that was just made may not be readable everywhere yet.
constexpr absl::Duration kMissingGrace = absl::Seconds(2);

absl::Status Failed(const SandboxRecord& record) {
  return MakeError(
      R::ERROR_REASON_SANDBOX_FAILED,
      fmt::format("sandbox {} ended before it could be used: {}", record.id, DescribeState(record)),
      {.metadata = {{"sandbox_id", record.id}, {"state", OneLine(record.state_text, 100)}}});
}

bool NoWaitingMends(const absl::Status& failure) {
  switch (ReasonOf(failure)) {
    case R::ERROR_REASON_UPSTREAM_UNAUTHENTICATED:
    case R::ERROR_REASON_UPSTREAM_PERMISSION_DENIED:
    case R::ERROR_REASON_CANCELLED:
    case R::ERROR_REASON_INVALID_ARGUMENT:
      return true;
    default:
      return false;
  }
}

}  // namespace

Task<absl::StatusOr<UsableWaiter::Step>> UsableWaiter::Look(CallContext context,
                                                            const std::string& sandbox_id,
                                                            bool may_be_missing,
                                                            SandboxRecord* record,
                                                            std::string* last_probe) {
  absl::StatusOr<Reading> reading = co_await client_.Get(context, sandbox_id);
  if (!reading.ok()) {
    const bool missing = ReasonOf(reading.status()) == R::ERROR_REASON_SANDBOX_NOT_FOUND;
    if (NoWaitingMends(reading.status()) || (missing && !may_be_missing)) {
      co_return reading.status();
    }
    *last_probe = std::string(reading.status().message());
    co_return Step::kAgain;
  }
  *record = std::move(reading->record);
  if (IsFinal(record->state) || record->state == SandboxState::kStopping) {
    co_return Failed(*record);
  }
  if (record->state != SandboxState::kRunning) {
    *last_probe = "state " + DescribeState(*record);
    co_return Step::kAgain;
  }
  absl::StatusOr<Endpoint> endpoint = co_await finder_.Find(context, sandbox_id);
  if (endpoint.ok()) {
    directories_.Remember(context, *record, *endpoint);
    co_return Step::kUsable;
  }
  if (NoWaitingMends(endpoint.status())) co_return endpoint.status();
  *last_probe = std::string(endpoint.status().message());
  co_return Step::kAgain;
}

Task<absl::StatusOr<SandboxRecord>> UsableWaiter::Wait(CallContext context, std::string sandbox_id,
                                                       absl::Duration until,
                                                       absl::Duration timeout) {
  EventLoop& loop = client_.loop();
  const absl::Duration started = loop.Now();
  Backoff pauses = Backoff::Steady(kFirstPause, kLongestPause);
  SandboxRecord record;
  std::string last_probe;
  while (loop.Now() < until) {
    CallContext look = context;
    look.deadline = std::min({context.deadline, until, loop.Now() + kReadTimeout});
    std::string probe;
    const bool may_be_missing = loop.Now() - started < kMissingGrace;
    CO_ASSIGN_OR_RETURN(const Step step,
                        co_await Look(look, sandbox_id, may_be_missing, &record, &probe));
    if (step == Step::kUsable) co_return record;
    const absl::Duration left = until - loop.Now();
    // A look that was cut short by the end says less than the one before it.
    if (left > absl::ZeroDuration() || last_probe.empty()) last_probe = std::move(probe);
    if (left <= absl::ZeroDuration()) break;
    const bool slept = co_await loop.Sleep(std::min(pauses.Next(), left));
    if (!slept) {
      co_return MakeError(R::ERROR_REASON_CANCELLED,
                          fmt::format("cancelled while sandbox {} was started", sandbox_id));
    }
  }
  last_probe = last_probe.empty() ? "none" : OneLine(last_probe, kMaxUpstreamWords);
  co_return MakeError(R::ERROR_REASON_READY_TIMEOUT,
                      fmt::format("sandbox {} was not usable within {}; last probe: {}", sandbox_id,
                                  absl::FormatDuration(timeout), last_probe),
                      {.metadata = {{"sandbox_id", sandbox_id}, {"last_probe", last_probe}}});
}

}  // namespace bridge
