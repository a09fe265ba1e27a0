// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/call.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "bridge/base/error.h"
#include "bridge/service/malformed.h"
#include "bridge/service/status.h"

namespace bridge {
namespace {

// How long an answer may take from here to the caller: 2 % of the time that he gave, at most 50 ms.
absl::Duration ReplyTime(absl::Duration allowed) {
  return std::clamp(allowed / 50, absl::Milliseconds(1), absl::Milliseconds(50));
}

// gRPC's C core sends a timeout rounded up to two or three digits (timeout_encoding.cc), so what
// arrives may be later than what the caller meant by this much.
absl::Duration TimeoutRounding(absl::Duration allowed) {
  absl::Duration unit = absl::Milliseconds(1);
  for (absl::Duration range = absl::Seconds(1); allowed >= range; range *= 10) unit *= 10;
  return unit;
}

// How long a client may take to acknowledge the last output of a call that ends while the bridge
// drains.
constexpr absl::Duration kLinger = absl::Milliseconds(50);

std::string_view One(const grpc::ServerContextBase& context, const char* key,
                     CallMetadata& metadata) {
  const auto& all = context.client_metadata();
  const auto [first, last] = all.equal_range(key);
  if (first == last) return {};
  if (std::next(first) != last) metadata.repeated = key;
  return {first->second.data(), first->second.size()};
}

CallMetadata MetadataOf(const grpc::ServerContextBase& context) {
  CallMetadata metadata;
  metadata.authorization = One(context, "authorization", metadata);
  metadata.api_key = One(context, "open-sandbox-api-key", metadata);
  const char* repeated = metadata.repeated;
  metadata.traceparent = One(context, "traceparent", metadata);
  if (metadata.repeated != repeated) {  // no reason to fail a call
    metadata.traceparent = {};
    metadata.repeated = repeated;
  }
  return metadata;
}

// What the caller allows from now on; infinite when he says nothing.
absl::Duration Allowed(const grpc::ServerContextBase& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteDuration();
  return absl::FromChrono(deadline - std::chrono::system_clock::now());
}

}  // namespace

bool CallBase::Admit(const grpc::CallbackServerContext& context) {
  if (host().observer() != nullptr) host().observer()->OnStart(method_);
  auto admission = host().Admit(method_, MetadataOf(context));
  if (!admission.ok()) {
    Conclude(std::move(admission).status());
    return false;
  }
  ticket_ = std::move(admission->ticket);
  context_ = std::move(admission->context);
  allowed_ = Allowed(context);
  const bool callers = allowed_ != absl::InfiniteDuration();
  if (!callers) allowed_ = method_.default_deadline;
  if (allowed_ == absl::InfiniteDuration()) return true;
  deadline_ = loop_.Now() + allowed_;
  // Early enough for the answer, which says why, to arrive before the caller gives up; upstream
  // requests earlier still, since their failure says more than ours.
  if (callers) deadline_ -= ReplyTime(allowed_) + TimeoutRounding(allowed_);
  context_.deadline = deadline_ - ReplyTime(allowed_);
  return true;
}

void CallBase::ArmDeadline() {
  if (deadline_ != absl::InfiniteDuration()) alarm_.SetAt(deadline_);
}

void CallBase::OnAlarm(void* self) {
  auto* call = static_cast<CallBase*>(self);
  if (call->lingering_) return call->Finish(*std::move(call->lingering_));
  call->Interrupt(Interruption::kDeadline);
}

// A call whose last owner is gone is still in the host's list until that owner took it out.
bool CallBase::TryRef() {
  int refs = refs_.load(std::memory_order_relaxed);
  while (refs > 0) {
    if (refs_.compare_exchange_weak(refs, refs + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void CallBase::Interrupt(Interruption why) {
  if (!TryRef()) return;
  PostOwned([this, why] {
    if (interruption_ != Interruption::kNone) return;
    interruption_ = why;
    interrupted_at_ = waiting_for();
    // gRPC reports a deadline that it noticed first as any other cancellation.
    if (why == Interruption::kCancelled && loop_.Now() >= deadline_) {
      interruption_ = Interruption::kDeadline;
    }
    cancel_.Cancel();
  });
}

absl::Status CallBase::Interrupted() const {
  const std::string at = *interrupted_at_ == '\0'
                             ? std::string()
                             : std::string(" while waiting for ") + interrupted_at_;
  const ErrorDetails details = {.metadata = {{"waiting_for", interrupted_at_}}};
  switch (interruption_) {
    case Interruption::kDeadline:
      return MakeError(ErrorReason::ERROR_REASON_DEADLINE_EXCEEDED,
                       "the call's time of " +
                           absl::FormatDuration(absl::Trunc(allowed_, absl::Milliseconds(1))) +
                           " was over" + at,
                       details);
    case Interruption::kDraining:
      return WithMetadata(host().DrainingError(), "waiting_for", interrupted_at_);
    case Interruption::kMalformed:
      return MalformedMessage();
    case Interruption::kCancelled:
    case Interruption::kNone:
      break;
  }
  return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "the caller cancelled the call" + at,
                   details);
}

// What travels when the call was interrupted. A handler that knows more than "cancelled" has the
// last word; a stream that was cut never passes for one that came to its end.
absl::Status CallBase::Settled(absl::Status status) const {
  if (interruption_ == Interruption::kNone) return status;
  if (status.ok()) return method_.streaming ? Interrupted() : status;
  if (status.code() != absl::StatusCode::kCancelled) return status;
  absl::Status settled = Interrupted();
  for (const auto& [key, value] : bridge::MetadataOf(status)) {
    settled = WithMetadata(settled, key, value);
  }
  return settled;
}

void CallBase::Conclude(absl::Status status) {
  alarm_.Clear();
  concluded_ = true;
  status = Settled(std::move(status));
  ticket_.Return();
  if (host().observer() != nullptr) {
    CallRecord record{.method = method_, .code = status.code(), .duration = age()};
    if (!status.ok()) {
      record.reason = ReasonOf(status);
      record.message = std::string_view(status.message().data(), status.message().size());
    }
    record.tenant = context_.tenant;
    record.trace_id = TraceIdOf(context_.traceparent);
    record.waiting_for = interrupted_at_;
    host().observer()->OnEnd(record);
  }
  if (!MustLinger()) return Finish(ToGrpcStatus(status));
  lingering_ = ToGrpcStatus(status);
  alarm_.SetAt(loop_.Now() + kLinger);
}

// A connection that drains is closed by gRPC with its last stream. What the client has sent by then
// and nobody has read (a WINDOW_UPDATE for the output, say) makes the kernel reset the connection
// instead, and what the client has not read yet is lost. A refused call has no output.
bool CallBase::MustLinger() const {
  return method_.streaming && loop_.OnLoop() && host().draining() && loop_.clock().passes();
}

}  // namespace bridge
