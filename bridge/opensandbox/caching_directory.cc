// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/caching_directory.h"

#include <algorithm>
#include <cassert>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/labels.h"
#include "bridge/opensandbox/sandbox_access.h"
#include "fmt/format.h"

namespace bridge {
namespace {

// A daemon that was just started, or resumed by somebody else, may need a moment.
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Milliseconds(800);
constexpr int kTries = 3;
// How soon the server is asked again that could not be asked about a known sandbox.
constexpr absl::Duration kRecheck = absl::Seconds(5);
// For looking why a daemon fell silent.
constexpr absl::Duration kExplainTimeout = absl::Seconds(3);
// A timeout may fire so much before the deadline that it was set for.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(10);

// The sandboxes run on while their server is away.
bool IsServersTrouble(const absl::Status& failure) {
  switch (ReasonOf(failure)) {
    case ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE:
    case ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT:
    case ErrorReason::ERROR_REASON_UPSTREAM_FAILED:
    case ErrorReason::ERROR_REASON_QUOTA_EXCEEDED:
      return true;
    default:
      return false;
  }
}

absl::Status CancelledWhileResolving(std::string_view sandbox_id) {
  return MakeError(ErrorReason::ERROR_REASON_CANCELLED,
                   fmt::format("cancelled while sandbox {} was looked up", sandbox_id));
}

absl::Status CheckDaemon(const CallContext& context, const Daemon& daemon,
                         std::string_view incarnation) {
  if (!context.tenant.empty() && daemon.tenant != TenantLabel(context.tenant)) {
    return NotYourSandbox(daemon.sandbox_id);
  }
  if (!incarnation.empty() && incarnation != daemon.incarnation) {
    return StaleIncarnation(daemon.sandbox_id);
  }
  return absl::OkStatus();
}

}  // namespace

CachingDirectory::CachingDirectory(LifecycleClient& client, DaemonFinder& finder, TaskScope& tasks,
                                   CachingDirectoryOptions options)
    : client_(client), finder_(finder), tasks_(tasks), loop_(client.loop()), options_(options) {}

CachingDirectory::~CachingDirectory() { assert(resolving_.empty()); }

// --- Hints

std::shared_ptr<Daemon> CachingDirectory::Fresh(const Key& key) {
  const auto it = index_.find(key);
  if (it == index_.end()) return nullptr;
  const Entry& entry = *it->second;
  const bool expired = entry.expires_at && loop_.clock().Now() >= *entry.expires_at;
  if (expired || loop_.TurnStart() - entry.checked > options_.trust) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return entry.daemon;
}

std::shared_ptr<Daemon> CachingDirectory::Store(const Key& key, const SandboxRecord& record,
                                                Endpoint endpoint) {
  if (const auto it = index_.find(key); it != index_.end()) Drop(it);
  auto daemon = std::make_shared<Daemon>();
  daemon->sandbox_id = record.id;
  daemon->incarnation = IncarnationOf(record);
  daemon->tenant = TenantLabelOf(record);
  daemon->endpoint = std::move(endpoint);
  entries_.push_front(
      {.key = key, .daemon = daemon, .checked = loop_.Now(), .expires_at = record.expires_at});
  index_[key] = entries_.begin();
  if (entries_.size() > options_.capacity) Drop(index_.find(entries_.back().key));
  return daemon;
}

void CachingDirectory::Drop(std::map<Key, std::list<Entry>::iterator>::iterator it) {
  entries_.erase(it->second);
  index_.erase(it);
}

void CachingDirectory::Forget(std::string_view sandbox_id) {
  auto it = index_.lower_bound({std::string(sandbox_id), ""});
  while (it != index_.end() && it->first.first == sandbox_id) Drop(it++);
}

void CachingDirectory::Remember(const CallContext& context, const SandboxRecord& record,
                                Endpoint endpoint) {
  Store({record.id, context.api_key}, record, std::move(endpoint));
}

// --- Resolving

Task<absl::StatusOr<std::shared_ptr<Daemon>>> CachingDirectory::Resolve(CallContext context,
                                                                        std::string sandbox_id,
                                                                        std::string incarnation) {
  if (sandbox_id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  const Key key(sandbox_id, context.api_key);
  if (std::shared_ptr<Daemon> daemon = Fresh(key)) {
    const absl::Status status = CheckDaemon(context, *daemon, incarnation);
    if (status.ok()) co_return daemon;
    if (ReasonOf(status) != ErrorReason::ERROR_REASON_STALE_INCARNATION) co_return status;
    Forget(sandbox_id);  // it may be the hint that is stale
  }
  const std::shared_ptr<Shared> shared = StartOrJoin(context, key);
  const std::optional<Found> found = co_await Shared::Wait(shared);
  if (!found) co_return CancelledWhileResolving(sandbox_id);
  if (!found->ok()) co_return found->status();
  CO_RETURN_IF_ERROR(CheckDaemon(context, ***found, incarnation));
  co_return **found;
}

std::shared_ptr<CachingDirectory::Shared> CachingDirectory::StartOrJoin(const CallContext& context,
                                                                        const Key& key) {
  if (const auto it = resolving_.find(key); it != resolving_.end()) return it->second;
  auto shared = std::make_shared<Shared>();
  resolving_[key] = shared;
  // Tenants share the answer and are checked one by one; whoever came first does not own it.
  CallContext own = context;
  own.tenant.clear();
  own.deadline = loop_.Now() + options_.resolve_timeout;
  tasks_.Start("resolve a sandbox", [this, shared, own, key]() -> Task<void> {
    Found found = co_await ResolveNow(own, key);
    resolving_.erase(key);
    shared->Set(std::move(found));
  });
  return shared;
}

std::shared_ptr<Daemon> CachingDirectory::KeepWithoutServer(const Key& key,
                                                            const absl::Status& failure) {
  const auto it = index_.find(key);
  if (it == index_.end() || !IsServersTrouble(failure)) return nullptr;
  Entry& entry = *it->second;
  if (entry.expires_at && loop_.clock().Now() >= *entry.expires_at) return nullptr;
  entry.checked = loop_.Now() - options_.trust + std::min(kRecheck, options_.trust);
  return entry.daemon;
}

Task<CachingDirectory::Found> CachingDirectory::ResolveNow(CallContext context, Key key) {
  const std::string& id = key.first;
  absl::StatusOr<Reading> reading = co_await client_.Get(context, id);
  if (!reading.ok()) {
    if (std::shared_ptr<Daemon> daemon = KeepWithoutServer(key, reading.status())) {
      co_return daemon;
    }
    Forget(id);
    co_return reading.status();
  }
  const SandboxRecord& record = reading->record;
  if (record.state != SandboxState::kRunning) {
    Forget(id);
    co_return NotRunning(record);
  }
  // Still the sandbox that was known: its endpoint is where it was.
  if (const auto it = index_.find(key); it != index_.end()) {
    Entry& entry = *it->second;
    if (entry.daemon->incarnation == IncarnationOf(record)) {
      entry.checked = loop_.Now();
      entry.expires_at = record.expires_at;
      co_return entry.daemon;
    }
  }
  CO_ASSIGN_OR_RETURN(Endpoint endpoint, co_await FindWithTries(context, id));
  co_return Store(key, record, std::move(endpoint));
}

Task<absl::StatusOr<Endpoint>> CachingDirectory::FindWithTries(const CallContext& context,
                                                               const std::string& sandbox_id) {
  Backoff backoff = Backoff::Steady(kFirstPause, kLongestPause);
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<Endpoint> endpoint = co_await finder_.Find(context, sandbox_id);
    if (endpoint.ok() || attempt == kTries || !MayAnswerLater(endpoint.status())) {
      co_return endpoint;
    }
    const absl::Duration pause = backoff.Next();
    if (loop_.Now() + pause >= context.deadline) co_return endpoint;
    const bool slept = co_await loop_.Sleep(pause);
    if (!slept) co_return CancelledWhileResolving(sandbox_id);
  }
}

Task<absl::Status> CachingDirectory::Explain(CallContext context, std::string sandbox_id,
                                             absl::Status failure) {
  if (ReasonOf(failure) == ErrorReason::ERROR_REASON_CANCELLED) co_return failure;
  // The caller's time was up: that tells nothing of the daemon, and none is left to ask.
  if (ReasonOf(failure) == ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT &&
      loop_.Now() + kDeadlineSlack >= context.deadline) {
    co_return failure;
  }
  std::string host;
  if (const auto it = index_.find({sandbox_id, context.api_key}); it != index_.end()) {
    host = HostOf(it->second->daemon->endpoint);
  }
  Forget(sandbox_id);
  context.deadline = std::min(context.deadline, loop_.Now() + kExplainTimeout);
  const absl::StatusOr<Reading> reading = co_await client_.Get(context, sandbox_id);
  if (reading.ok() && reading->record.state != SandboxState::kRunning) {
    co_return NotRunning(reading->record);
  }
  if (ReasonOf(reading.status()) == ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND) {
    co_return reading.status();
  }
  const auto known = MetadataOf(failure);
  if (const auto it = known.find("host"); it != known.end()) host = it->second;
  const auto phase = known.find("phase");
  // Who took the request and was too slow was reached: no other way there would mend that.
  const bool slow = ReasonOf(failure) == ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT &&
                    phase != known.end() && phase->second == "answer";
  absl::Status status = MakeError(
      slow ? ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT
           : ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
      fmt::format("the daemon of sandbox {} {}: {}", sandbox_id,
                  slow ? "is too slow" : "cannot be reached", std::string(failure.message())),
      {.metadata = {{"sandbox_id", sandbox_id}}});
  if (!host.empty()) status = WithMetadata(status, "endpoint", host);
  if (phase != known.end()) status = WithMetadata(status, "phase", phase->second);
  co_return status;
}

}  // namespace bridge
