// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/call_host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bridge/base/status_macros.h"

namespace bridge {
namespace {

// How long a caller that met a limit is asked to wait.
constexpr absl::Duration kBusyRetry = absl::Seconds(1);
// An OpenSandbox key is a header value.
constexpr size_t kMaxApiKeyBytes = 4096;

bool IsHeaderValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

absl::Status TooMany(const char* limit, bool of_tenant) {
  return MakeError(ErrorReason::ERROR_REASON_TOO_MANY_STREAMS,
                   std::string(of_tenant ? "this tenant's" : "the bridge's") + " limit on " +
                       limit + " at once is reached",
                   {.metadata = {{"limit", of_tenant ? std::string("tenant_") + limit : limit}},
                    .retry_after = kBusyRetry});
}

bool Exceeds(int64_t used, int64_t more, int64_t limit) {
  return limit > 0 && more > 0 && used + more > limit;
}

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool AllZero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

bool IsTraceparent(std::string_view text) {
  return text.size() == 55 && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
         text.substr(0, 2) == "00" && IsLowerHex(text.substr(3, 32)) &&
         IsLowerHex(text.substr(36, 16)) && IsLowerHex(text.substr(53, 2)) &&
         !AllZero(text.substr(3, 32)) && !AllZero(text.substr(36, 16));
}

std::string_view TraceIdOf(std::string_view traceparent) {
  return traceparent.empty() ? std::string_view() : traceparent.substr(3, 32);
}

CallHost::CallHost(Options options) : options_(std::move(options)), api_key_(options_.api_key) {}

CallHost::~CallHost() {
  // Going on would be a use after free in whatever thread the call ends on.
  if (live() != 0) {
    std::fprintf(stderr, "bridge: %d calls are left at the end of their server\n", live());
    std::abort();
  }
}

absl::StatusOr<CallHost::Admission> CallHost::Admit(const Method& method,
                                                    const CallMetadata& metadata) {
  if (draining()) return DrainingError();
  if (metadata.repeated != nullptr) {
    return InvalidField(metadata.repeated, "was sent more than once");
  }
  if (method.request_bytes > kMaxRequestBytes) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                     "the request is larger than 16 MiB; send files and input in parts");
  }
  Caller caller;
  if (options_.authenticator != nullptr) {
    ASSIGN_OR_RETURN(caller, options_.authenticator->Authenticate(metadata.authorization));
  }
  Admission admission;
  ASSIGN_OR_RETURN(admission.context.api_key, KeyFor(metadata));
  Ticket& ticket = admission.ticket;
  (method.streaming ? ticket.amount_.streams : ticket.amount_.calls) = 1;
  ticket.amount_.bytes = method.request_bytes;
  {
    std::lock_guard<std::mutex> lock(mu_);
    Usage* tenant = caller.tenant.empty() ? nullptr : &tenants_[caller.tenant];
    RETURN_IF_ERROR(Take(tenant, ticket.amount_));
    ticket.host_ = this;
    ticket.tenant_ = tenant;
  }
  admission.context.tenant = std::move(caller.tenant);
  // What is not a trace context is no reason to fail a call, and not ours to pass on.
  if (IsTraceparent(metadata.traceparent)) {
    admission.context.traceparent = std::string(metadata.traceparent);
  }
  return admission;
}

absl::Status CallHost::DrainingError() const {
  return MakeError(ErrorReason::ERROR_REASON_DRAINING,
                   "this bridge is shutting down; call again, another replica will answer",
                   {.retry_after = absl::Milliseconds(retry_after_ms_.load())});
}

absl::StatusOr<std::string> CallHost::KeyFor(const CallMetadata& metadata) {
  if (metadata.api_key.empty()) {
    std::lock_guard<std::mutex> lock(mu_);
    return api_key_;
  }
  if (!options_.forward_api_keys) {
    // Ignoring it would act with the bridge's rights for somebody who asked for his own.
    return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                     "this bridge does not take OpenSandbox keys from its callers "
                     "(--forward_api_keys is off); leave open-sandbox-api-key out",
                     {.metadata = {{"feature", "caller_api_key"}}});
  }
  if (metadata.api_key.size() > kMaxApiKeyBytes || !IsHeaderValue(metadata.api_key)) {
    return InvalidField("open-sandbox-api-key", "is not a key");
  }
  return std::string(metadata.api_key);
}

void CallHost::Usage::Add(const Usage& amount, int sign) {
  calls += sign * amount.calls;
  streams += sign * amount.streams;
  bytes += sign * amount.bytes;
}

absl::Status CallHost::Take(Usage* tenant, const Usage& amount) {
  const auto check = [&amount](const Usage& used, const CallLimits::Set& limit, bool of_tenant) {
    if (Exceeds(used.streams, amount.streams, limit.streams)) return TooMany("streams", of_tenant);
    if (Exceeds(used.calls, amount.calls, limit.calls)) return TooMany("calls", of_tenant);
    if (Exceeds(used.bytes, amount.bytes, limit.bytes)) return TooMany("bytes", of_tenant);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(check(global_, options_.limits.global, false));
  if (tenant != nullptr) {
    RETURN_IF_ERROR(check(*tenant, options_.limits.per_tenant, true));
    tenant->Add(amount, +1);
  }
  global_.Add(amount, +1);
  return absl::OkStatus();
}

void CallHost::Give(Usage* tenant, const Usage& amount) {
  global_.Add(amount, -1);
  if (tenant != nullptr) tenant->Add(amount, -1);
}

void CallHost::StartDraining(absl::Duration retry_after) {
  retry_after_ms_.store(absl::ToInt64Milliseconds(retry_after));
  draining_.store(true);
}

void CallHost::InterruptAll() {
  std::lock_guard<std::mutex> lock(mu_);
  for (Entry* entry = first_; entry != nullptr; entry = entry->next_) {
    entry->Interrupt(Interruption::kDraining);
  }
}

void CallHost::SetApiKey(std::string key) {
  std::lock_guard<std::mutex> lock(mu_);
  api_key_ = std::move(key);
}

std::vector<LiveCall> CallHost::LiveCalls() const {
  std::vector<LiveCall> calls;
  std::lock_guard<std::mutex> lock(mu_);
  for (const Entry* entry = first_; entry != nullptr; entry = entry->next_) {
    calls.push_back({entry->method_, entry->age(), entry->waiting_for()});
  }
  return calls;
}

std::string CallHost::DescribeLiveCalls() const {
  std::string text;
  for (const LiveCall& call : LiveCalls()) {
    char age[32];
    std::snprintf(age, sizeof age, "age=%.3fs", absl::ToDoubleSeconds(call.age));
    text += age;
    text += std::string(" method=") + call.method + " waiting_for=\"" + call.waiting_for + "\"\n";
  }
  return text;
}

// ---- Ticket

CallHost::Ticket& CallHost::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Return();
  host_ = std::exchange(other.host_, nullptr);
  tenant_ = std::exchange(other.tenant_, nullptr);
  amount_ = std::exchange(other.amount_, {});
  return *this;
}

void CallHost::Ticket::Return() {
  if (host_ == nullptr) return;
  std::lock_guard<std::mutex> lock(host_->mu_);
  host_->Give(tenant_, amount_);
  host_ = nullptr;
}

absl::Status CallHost::Ticket::Hold(int64_t bytes) {
  if (host_ == nullptr) return absl::OkStatus();
  bytes = std::max(bytes, -amount_.bytes);
  std::lock_guard<std::mutex> lock(host_->mu_);
  RETURN_IF_ERROR(host_->Take(tenant_, {.bytes = bytes}));
  amount_.bytes += bytes;
  return absl::OkStatus();
}

// ---- Entry

CallHost::Entry::Entry(CallHost& host, const char* method)
    : host_(host), method_(method), started_(host.clock().Monotonic()) {
  host_.live_.fetch_add(1);
  std::lock_guard<std::mutex> lock(host_.mu_);
  previous_ = host_.last_;
  (previous_ != nullptr ? previous_->next_ : host_.first_) = this;
  host_.last_ = this;
}

void CallHost::Entry::Leave() {
  std::lock_guard<std::mutex> lock(host_.mu_);
  if (!std::exchange(listed_, false)) return;
  (previous_ != nullptr ? previous_->next_ : host_.first_) = next_;
  (next_ != nullptr ? next_->previous_ : host_.last_) = previous_;
}

CallHost::Entry::~Entry() {
  Leave();
  host_.live_.fetch_sub(1);  // last: whoever sees zero may destroy the host
}

}  // namespace bridge
