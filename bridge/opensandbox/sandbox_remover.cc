// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_remover.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
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

constexpr absl::Duration kConflictPatience = absl::Seconds(20);
constexpr absl::Duration kProofInterval = absl::Seconds(1);
// The server does not know the sandbox and still shows it: how long it may take to agree.
constexpr absl::Duration kDisagreementPatience = absl::Milliseconds(1500);
constexpr int kTries = 3;
// What a call keeps for its own answer before its deadline.
constexpr absl::Duration kReserve = absl::Milliseconds(200);
constexpr size_t kMaxEvidence = 100;

int StatusIn(const absl::Status& failure) {
  const auto metadata = MetadataOf(failure);
  const auto it = metadata.find("upstream_status");
  return it == metadata.end() ? 0 : std::atoi(it->second.c_str());
}

// A failure after which the sandbox may be gone by our doing.
bool MayHaveWorked(const absl::Status& failure) {
  switch (ReasonOf(failure)) {
    case R::ERROR_REASON_UPSTREAM_FAILED:
    case R::ERROR_REASON_UPSTREAM_TIMEOUT:
      return true;
    case R::ERROR_REASON_UPSTREAM_UNAVAILABLE: {
      const auto metadata = MetadataOf(failure);
      const auto phase = metadata.find("phase");
      return phase == metadata.end() || phase->second != "connect";
    }
    default:
      return false;
  }
}

bool IsWorthAnotherTry(const absl::Status& failure) {
  switch (ReasonOf(failure)) {
    case R::ERROR_REASON_UPSTREAM_FAILED:
    case R::ERROR_REASON_UPSTREAM_TIMEOUT:
    case R::ERROR_REASON_UPSTREAM_UNAVAILABLE:
    case R::ERROR_REASON_QUOTA_EXCEEDED:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct SandboxRemover::Run {
  CallContext context;
  std::string id;
  std::string incarnation;
  EventLoop& loop;
  Deletion deletion = {};
  bool unsure = false;             // a DELETE may have worked although it failed
  bool accepted = false;           // one did
  bool unknown = false;            // one was answered 404
  bool gone = false;               // a read says so
  absl::Status look_failure = {};  // of the last look, if it failed
  int failures = 0;
  Backoff conflict_pauses = Backoff::Steady(absl::Milliseconds(500), absl::Seconds(2));
  Backoff failure_pauses = Backoff::Steady(absl::Milliseconds(200), absl::Seconds(1));

  void Note(std::string_view action, int status, std::string_view detail) {
    auto& evidence = deletion.evidence;
    DeletionEvidence entry = {.action = std::string(action),
                              .status = status,
                              .detail = OneLine(detail, kMaxUpstreamWords),
                              .at = loop.clock().Now()};
    // The same thing seen again and again: the first and the last time say it all.
    const size_t n = evidence.size();
    const auto same = [&entry](const DeletionEvidence& other) {
      return other.action == entry.action && other.status == entry.status &&
             other.detail == entry.detail;
    };
    if (n >= 2 && same(evidence[n - 1]) && same(evidence[n - 2])) {
      evidence[n - 1] = std::move(entry);
    } else if (n < kMaxEvidence) {
      evidence.push_back(std::move(entry));
    } else {
      evidence.back() = std::move(entry);
    }
  }
};

absl::Duration SandboxRemover::Left(const Run& run) const {
  return run.context.deadline - run.loop.Now() - kReserve;
}

Task<SandboxRemover::Seen> SandboxRemover::Look(Run& run) {
  const absl::StatusOr<Reading> reading = co_await client_.Get(run.context, run.id);
  run.look_failure = absl::OkStatus();
  if (reading.ok()) {
    run.Note("GET", 200, DescribeState(reading->record));
    // Something else under the same id is not what was to be deleted.
    const bool other =
        !run.incarnation.empty() && IncarnationOf(reading->record) != run.incarnation;
    co_return other ? Seen::kGone : Seen::kThere;
  }
  const int status = StatusIn(reading.status());
  if (ReasonOf(reading.status()) == R::ERROR_REASON_SANDBOX_NOT_FOUND) {
    run.Note("GET", status, "not found");
    co_return Seen::kGone;
  }
  run.Note("GET", status, std::string(reading.status().message()));
  run.look_failure = reading.status();
  co_return Seen::kUnknown;
}

// Whose it is, and which one: before anything is done.
Task<absl::Status> SandboxRemover::Guard(Run& run) {
  if (run.context.tenant.empty() && run.incarnation.empty()) co_return absl::OkStatus();
  const absl::StatusOr<Reading> reading = co_await client_.Get(run.context, run.id);
  if (reading.ok()) {
    run.Note("GET", 200, DescribeState(reading->record));
    co_return CheckAccess(run.context, reading->record, run.incarnation);
  }
  if (ReasonOf(reading.status()) != R::ERROR_REASON_SANDBOX_NOT_FOUND) co_return reading.status();
  run.Note("GET", StatusIn(reading.status()), "not found");
  run.unknown = true;
  co_return absl::OkStatus();
}

// DELETE until the server has said something final. OK: it was accepted, or there is nothing.
Task<absl::Status> SandboxRemover::Ask(Run& run) {
  const absl::Duration patience_ends = run.loop.Now() + kConflictPatience;
  while (true) {
    const absl::StatusOr<int> status = co_await client_.Delete(run.context, run.id);
    if (status.ok()) {
      run.Note("DELETE", *status, "accepted");
      run.accepted = true;
      co_return absl::OkStatus();
    }
    const absl::Status& failure = status.status();
    if (ReasonOf(failure) == R::ERROR_REASON_SANDBOX_NOT_FOUND) {
      run.Note("DELETE", StatusIn(failure), "not found");
      run.unknown = true;
      co_return absl::OkStatus();
    }
    run.Note("DELETE", StatusIn(failure), std::string(failure.message()));
    absl::Duration pause;
    if (ReasonOf(failure) == R::ERROR_REASON_CONFLICT) {
      pause = RetryAfterOf(failure).value_or(run.conflict_pauses.Next());
      if (run.loop.Now() + pause > patience_ends) co_return failure;
    } else {
      CO_RETURN_IF_ERROR(co_await AfterFailure(run, failure));
      if (run.gone) co_return absl::OkStatus();
      pause = RetryAfterOf(failure).value_or(run.failure_pauses.Next());
    }
    if (pause > Left(run)) co_return failure;
    const bool slept = co_await run.loop.Sleep(pause);
    if (!slept) co_return MakeError(R::ERROR_REASON_CANCELLED, "cancelled between two tries");
  }
}

// OK: it is gone after all (run.gone), or another try is worth it.
Task<absl::Status> SandboxRemover::AfterFailure(Run& run, absl::Status failure) {
  run.unsure = run.unsure || MayHaveWorked(failure);
  if (!IsWorthAnotherTry(failure)) co_return failure;
  if (MayHaveWorked(failure)) {
    // Two deletions at once end with a 500 for one of them: look before asking again.
    const Seen seen = co_await Look(run);
    run.gone = seen == Seen::kGone;
    if (run.gone) co_return absl::OkStatus();
  }
  if (++run.failures == kTries) co_return failure;
  co_return absl::OkStatus();
}

// Looks until it is gone or patience is over; at least once.
Task<void> SandboxRemover::Prove(Run& run, absl::Duration patience) {
  const absl::Duration ends = run.loop.Now() + patience;
  while (!run.gone) {
    const Seen seen = co_await Look(run);
    run.gone = seen == Seen::kGone;
    const absl::Duration pause = std::min({kProofInterval, ends - run.loop.Now(), Left(run)});
    if (run.gone || pause <= absl::ZeroDuration()) co_return;
    const bool slept = co_await run.loop.Sleep(pause);
    if (!slept) co_return;
  }
}

Task<absl::StatusOr<Deletion>> SandboxRemover::Delete(CallContext context, std::string sandbox_id,
                                                      std::string incarnation,
                                                      absl::Duration wait_for_proof) {
  if (sandbox_id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Run run = {.context = std::move(context),
             .id = std::move(sandbox_id),
             .incarnation = std::move(incarnation),
             .loop = client_.loop()};
  CO_RETURN_IF_ERROR(co_await Guard(run));
  directories_.Forget(run.id);
  if (!run.unknown) CO_RETURN_IF_ERROR(co_await Ask(run));
  co_await Prove(run, run.accepted ? wait_for_proof : kDisagreementPatience);
  directories_.Forget(run.id);  // whoever looked it up meanwhile saw the last of it
  const bool cancelled = co_await Cancelled();
  if (cancelled && !run.gone) {
    co_return MakeError(
        R::ERROR_REASON_CANCELLED,
        fmt::format("cancelled while the end of sandbox {} was to be proven", run.id));
  }
  if (run.gone) {
    run.deletion.verdict = run.accepted || run.unsure ? DeletionVerdict::kConfirmedGone
                                                      : DeletionVerdict::kAlreadyGone;
  } else if (!run.accepted && !run.look_failure.ok()) {
    co_return run.look_failure;
  } else if (!run.accepted) {
    co_return MakeError(
        R::ERROR_REASON_CONFLICT,
        fmt::format(
            "the server does not know sandbox {} when asked to delete it, and still shows it",
            run.id),
        {.metadata = {{"sandbox_id", run.id}}});
  }
  co_return std::move(run.deletion);
}

}  // namespace bridge
