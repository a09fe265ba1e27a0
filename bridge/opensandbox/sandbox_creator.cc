// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_creator.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/random.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/backoff.h"
#include "bridge/opensandbox/labels.h"
#include "bridge/opensandbox/sandbox_access.h"
#include "bridge/opensandbox/sandbox_policy.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using R = ErrorReason;

// Longer than the call waits: an answer that comes late still names what must be deleted.
constexpr absl::Duration kAnswerGrace = absl::Minutes(2);
// How long a sandbox is looked for whose POST was not answered: while the call waits, and after it.
constexpr absl::Duration kLookUpTime = absl::Seconds(10);
constexpr absl::Duration kSweepTime = absl::Minutes(2);
constexpr absl::Duration kFirstLookPause = absl::Milliseconds(250);
constexpr absl::Duration kLookPause = absl::Seconds(1);
constexpr absl::Duration kSweepPause = absl::Seconds(5);
constexpr absl::Duration kListTimeout = absl::Seconds(5);
// How long a failed call waits for the proof that its sandbox is gone, and what it keeps of its
// deadline for the answer.
constexpr absl::Duration kReclaimWait = absl::Seconds(10);
constexpr absl::Duration kReserve = absl::Milliseconds(200);
constexpr int kLookPageSize = 50;
constexpr size_t kCreateIdBytes = 16;

// After this failure of the POST, may there be a sandbox all the same?
bool MayHaveBeenMade(const absl::Status& failure) {
  const auto metadata = MetadataOf(failure);
  if (const auto phase = metadata.find("phase"); phase != metadata.end()) {
    return phase->second != "connect";
  }
  const auto status = metadata.find("upstream_status");
  if (status == metadata.end()) return ReasonOf(failure) != R::ERROR_REASON_DEADLINE_EXCEEDED;
  const int code = std::atoi(status->second.c_str());
  // A success that could not be read, or a gateway's word about a server that may still work on it.
  // The server's own errors have a code, and it cleans up after itself.
  return (code >= 200 && code < 300) || (code >= 500 && !metadata.contains("upstream_code"));
}

absl::Status FateUnknown(const absl::Status& failure, bool repeatable) {
  return WithContext(failure,
                     repeatable ? "whether a sandbox was made is not known (repeat the call with "
                                  "the same request_id to find it)"
                                : "whether a sandbox was made is not known (it will be deleted if "
                                  "it turns up)");
}

absl::Status Ended(const SandboxRecord& record) {
  return MakeError(
      R::ERROR_REASON_SANDBOX_FAILED,
      fmt::format("sandbox {} of this request_id is {}; delete it or use a new request_id",
                  record.id, DescribeState(record)),
      {.metadata = {{"sandbox_id", record.id}, {"state", record.state_text}}});
}

absl::Status Ambiguous(const std::vector<SandboxRecord>& matches) {
  std::string ids;
  for (const SandboxRecord& match : matches) ids += (ids.empty() ? "" : ",") + match.id;
  return MakeError(R::ERROR_REASON_AMBIGUOUS_ASSIGNMENT,
                   fmt::format("{} sandboxes carry this request_id", matches.size()),
                   {.metadata = {{"matches", ids}}});
}

// What some servers have no part for, which they refuse with words about something else: how those
// are known, and what they mean.
struct Lack {
  bool (*asked)(const CreateSpec& spec);
  std::initializer_list<std::string_view> words;  // of the upstream's code or message
  const char* feature;
  const char* meaning;
};

const Lack kLacks[] = {
    {[](const CreateSpec& spec) { return !spec.template_id.empty(); },
     {"INVALID_ENTRYPOINT", "image or snapshotId"},
     "sandboxes.templates",
     "this upstream makes no sandboxes from templates"},
    {[](const CreateSpec& spec) { return spec.secure_access; },
     {"secureAccess is not supported"},
     "sandboxes.secure_access",
     "this upstream has no gateway that could secure access to a sandbox"},
    {[](const CreateSpec& spec) { return spec.network_policy.has_value(); },
     {"networkPolicy is not supported", "egress.image must be configured"},
     "sandboxes.network_policy",
     "this upstream cannot restrict the network of a sandbox"},
};

absl::Status WithLackExplained(const CreateSpec& spec, const absl::Status& failure) {
  if (ReasonOf(failure) != R::ERROR_REASON_UPSTREAM_REJECTED) return failure;
  const auto metadata = MetadataOf(failure);
  const auto code = metadata.find("upstream_code");
  std::string said(failure.message());
  if (code != metadata.end()) said += ' ' + code->second;
  for (const Lack& lack : kLacks) {
    if (!lack.asked(spec)) continue;
    for (const std::string_view words : lack.words) {
      if (said.find(words) == std::string::npos) continue;
      return MakeError(R::ERROR_REASON_UNSUPPORTED_FEATURE, lack.meaning,
                       {.metadata = {{"feature", lack.feature}}});
    }
  }
  return failure;
}

}  // namespace

// Shared by the call that waits and the task that posts.
struct SandboxCreator::Attempt {
  CallContext context;
  std::string create_id;
  bool repeatable = false;  // a repeat of the call would find the sandbox
  absl::Duration post_until;
  std::shared_ptr<void> gate;
  std::shared_ptr<SharedResult<Answer>> answer = std::make_shared<SharedResult<Answer>>();
  bool abandoned = false;  // nobody waits for the answer any more
};

SandboxCreator::SandboxCreator(Parts parts, CreateDefaults defaults)
    : parts_(parts), loop_(parts.client.loop()), defaults_(std::move(defaults)) {}

SandboxCreator::~SandboxCreator() = default;

CreateSpec SandboxCreator::WithDefaults(CreateSpec spec) const {
  if (!spec.template_id.empty()) return spec;  // its template has the shape
  if (spec.entrypoint.empty()) spec.entrypoint = defaults_.entrypoint;
  spec.resource_limits.emplace("cpu", defaults_.cpu);
  spec.resource_limits.emplace("memory", defaults_.memory);
  return spec;
}

// --- The POST

std::shared_ptr<SandboxCreator::Attempt> SandboxCreator::StartPost(
    const CallContext& context, CreateSpec spec, std::string create_id, bool repeatable,
    absl::Duration ready_timeout, std::shared_ptr<void> gate) {
  auto attempt = std::make_shared<Attempt>();
  attempt->context = context;
  attempt->create_id = std::move(create_id);
  attempt->repeatable = repeatable;
  attempt->post_until = loop_.Now() + ready_timeout + kAnswerGrace;
  attempt->gate = std::move(gate);
  parts_.tasks.Start("create a sandbox",
                     [this, attempt, spec = std::move(spec)] { return RunAttempt(attempt, spec); });
  return attempt;
}

Task<void> SandboxCreator::RunAttempt(std::shared_ptr<Attempt> attempt, CreateSpec spec) {
  CallContext context = attempt->context;
  context.deadline = attempt->post_until;
  Answer answer = co_await parts_.client.Create(context, std::move(spec));
  const bool lost = !answer.ok() && MayHaveBeenMade(answer.status());
  if (lost) {
    Answer found =
        co_await LookUp(context, attempt->create_id, loop_.Now() + kLookUpTime, kLookPause);
    answer = found.ok() ? std::move(found) : FateUnknown(answer.status(), attempt->repeatable);
  }
  const absl::StatusOr<std::string> id =
      answer.ok() ? absl::StatusOr<std::string>(answer->id) : answer.status();
  attempt->answer->Set(std::move(answer));
  if (id.ok()) {
    if (attempt->abandoned) parts_.reclaimer.Start(context, *id, attempt->gate);
    co_return;
  }
  // A repeat with the same request_id may adopt it: then it must not be deleted here.
  if (!lost || attempt->repeatable) co_return;
  const Answer late =
      co_await LookUp(context, attempt->create_id, loop_.Now() + kSweepTime, kSweepPause);
  if (late.ok()) parts_.reclaimer.Start(context, late->id, nullptr);
}

Task<SandboxCreator::Answer> SandboxCreator::LookUp(CallContext context, std::string create_id,
                                                    absl::Duration until,
                                                    absl::Duration longest_pause) {
  Backoff pauses = Backoff::Steady(kFirstLookPause, longest_pause);
  while (true) {
    context.deadline = std::min(until, loop_.Now() + kListTimeout);
    ListQuery query{.metadata = CreateIdFilter(create_id), .page = 1, .page_size = kLookPageSize};
    const absl::StatusOr<SandboxPage> page = co_await parts_.client.List(context, std::move(query));
    if (page.ok()) {
      for (const SandboxRecord& record : page->items) {
        const auto label = record.metadata.find("sandbox-bridge/create-id");
        if (label == record.metadata.end() || label->second != create_id) continue;
        if (!InheritedItsLabels(record)) co_return record;
      }
    }
    const absl::Duration pause = pauses.Next();
    bool go_on = loop_.Now() + pause < until;
    if (go_on) go_on = co_await loop_.Sleep(pause);
    if (!go_on) co_return MakeError(R::ERROR_REASON_SANDBOX_NOT_FOUND, "it did not turn up");
  }
}

Task<absl::StatusOr<SandboxRecord>> SandboxCreator::AwaitPost(std::shared_ptr<Attempt> attempt,
                                                              absl::Duration ready_until,
                                                              absl::Duration ready_timeout) {
  std::optional<Answer> answer;
  auto wait = [&answer, &attempt]() -> Task<void> {
    answer = co_await SharedResult<Answer>::Wait(attempt->answer);
  };
  (void)co_await RunWithin(loop_, ready_until - loop_.Now(), wait);
  if (answer) co_return *std::move(answer);
  attempt->abandoned = true;
  const bool cancelled = co_await Cancelled();
  if (cancelled) {
    co_return MakeError(R::ERROR_REASON_CANCELLED,
                        "cancelled before the server had answered; what it makes will be deleted");
  }
  co_return MakeError(
      R::ERROR_REASON_READY_TIMEOUT,
      fmt::format("the server had not answered the create after {}; what it makes will be deleted",
                  absl::FormatDuration(ready_timeout)),
      {.metadata = {{"last_probe", "no answer to the create"}}});
}

// --- Repeated creates

Task<absl::StatusOr<std::shared_ptr<void>>> SandboxCreator::EnterGate(CallContext context,
                                                                      std::string request_id,
                                                                      absl::Duration until) {
  std::string key = request_id + '\n' + context.tenant + '\n' + context.api_key;
  for (auto it = gates_.find(key); it != gates_.end(); it = gates_.find(key)) {
    const std::shared_ptr<Gate> before = it->second;
    auto wait = [&before]() -> Task<void> { (void)co_await Gate::Wait(before); };
    (void)co_await RunWithin(loop_, until - loop_.Now(), wait);
    const bool cancelled = co_await Cancelled();
    if (cancelled) {
      co_return MakeError(R::ERROR_REASON_CANCELLED, "cancelled behind another create");
    }
    if (!before->ready()) {
      co_return MakeError(R::ERROR_REASON_CONFLICT,
                          "another create with this request_id is under way");
    }
  }
  auto gate = std::make_shared<Gate>();
  gates_[key] = gate;
  // Opened when the last owner is gone: the call, and the tasks that clean up behind it.
  co_return std::shared_ptr<void>(gate.get(), [this, gate, key](void*) {
    gates_.erase(key);
    loop_.Post([gate] { gate->Set(true); });
  });
}

Task<absl::StatusOr<std::vector<SandboxRecord>>> SandboxCreator::FindByRequestId(
    CallContext context, std::string request_id) {
  Labels filter = RequestIdFilter(request_id);
  filter.merge(TenantFilter(context.tenant));
  ListQuery query{.metadata = std::move(filter), .page = 1, .page_size = kLookPageSize};
  CO_ASSIGN_OR_RETURN(SandboxPage page, co_await parts_.client.List(context, std::move(query)));
  std::erase_if(page.items, [&](const SandboxRecord& record) {
    return RequestIdOf(record) != request_id || !BelongsTo(record, context.tenant);
  });
  co_return std::move(page.items);
}

Task<absl::StatusOr<CreatedSandbox>> SandboxCreator::Adopt(
    CallContext context, std::string request_id, std::string digest,
    std::vector<SandboxRecord> matches, absl::Duration ready_until, absl::Duration ready_timeout) {
  if (matches.size() > 1) co_return Ambiguous(matches);
  const SandboxRecord& match = matches.front();
  if (!SameSpec(SpecDigestOf(match), digest)) {
    co_return MakeError(
        R::ERROR_REASON_REQUEST_ID_REUSED,
        fmt::format("request_id {} made sandbox {} from another spec", request_id, match.id),
        {.metadata = {{"existing_sandbox_id", match.id}}});
  }
  if (IsFinal(match.state)) co_return Ended(match);
  // Another call made it and answers for it: a failure here deletes nothing.
  CO_ASSIGN_OR_RETURN(SandboxRecord record,
                      co_await parts_.usable.Wait(context, match.id, ready_until, ready_timeout));
  co_return CreatedSandbox{.record = std::move(record), .adopted = true};
}

// The gate holds within one bridge. Two replicas that got the same request_id at the same moment
// have both made a sandbox: the older one stays, and whoever sees both gives its younger one back.
Task<absl::StatusOr<CreatedSandbox>> SandboxCreator::SettleRace(
    CallContext context, std::string request_id, std::string digest, CreatedSandbox mine,
    absl::Duration ready_until, absl::Duration ready_timeout, std::shared_ptr<void> gate) {
  absl::StatusOr<std::vector<SandboxRecord>> matches =
      co_await FindByRequestId(context, request_id);
  const bool cancelled = co_await Cancelled();
  if (cancelled) {
    const absl::Status error = MakeError(R::ERROR_REASON_CANCELLED, "cancelled");
    co_return co_await GiveBack(context, mine.record.id, error, gate);
  }
  if (!matches.ok()) co_return mine;  // it is made and usable, whatever the list says
  std::erase_if(*matches, [](const SandboxRecord& record) { return IsFinal(record.state); });
  const auto age = [](const SandboxRecord& record) {
    return std::make_pair(record.created_at.value_or(absl::InfiniteFuture()), record.id);
  };
  const auto oldest = std::min_element(
      matches->begin(), matches->end(),
      [&age](const SandboxRecord& a, const SandboxRecord& b) { return age(a) < age(b); });
  if (oldest == matches->end() || age(mine.record) <= age(*oldest)) co_return mine;
  std::vector<SandboxRecord> winner = {std::move(*oldest)};
  (void)parts_.reclaimer.Start(context, mine.record.id, std::move(gate));
  co_return co_await Adopt(std::move(context), std::move(request_id), std::move(digest),
                           std::move(winner), ready_until, ready_timeout);
}

// --- The whole

Task<absl::Status> SandboxCreator::GiveBack(CallContext context, std::string sandbox_id,
                                            absl::Status error, std::shared_ptr<void> gate) {
  const auto outcome = parts_.reclaimer.Start(context, sandbox_id, std::move(gate));
  bool gone = false;
  auto wait = [&gone, &outcome]() -> Task<void> {
    const std::optional<bool> proven = co_await Reclaimer::Outcome::Wait(outcome);
    gone = proven.value_or(false);
  };
  const absl::Duration bound = std::min(kReclaimWait, context.deadline - loop_.Now() - kReserve);
  if (bound > absl::ZeroDuration()) (void)co_await RunWithin(loop_, bound, wait);
  if (gone) co_return error;
  co_return WithMetadata(
      WithContext(error, fmt::format("sandbox {} may still be there", sandbox_id)),
      "leaked_sandbox_id", sandbox_id);
}

Task<absl::StatusOr<CreatedSandbox>> SandboxCreator::Create(CallContext context, CreateSpec spec,
                                                            std::string request_id,
                                                            absl::Duration ready_timeout) {
  const absl::Duration ready_until = loop_.Now() + ready_timeout;
  const std::string digest = SpecDigest(spec);
  std::shared_ptr<void> gate;
  if (!request_id.empty()) {
    CO_ASSIGN_OR_RETURN(gate, co_await EnterGate(context, request_id, ready_until));
    CO_ASSIGN_OR_RETURN(std::vector<SandboxRecord> matches,
                        co_await FindByRequestId(context, request_id));
    if (!matches.empty()) {
      co_return co_await Adopt(context, request_id, digest, std::move(matches), ready_until,
                               ready_timeout);
    }
  }
  CreateSpec full = WithDefaults(spec);
  const bool clamped = full.ttl && *full.ttl < kMinTtl;
  if (clamped) full.ttl = kMinTtl;
  std::string create_id = RandomHex(kCreateIdBytes);
  full.metadata.merge(OwnLabels(
      spec, {.request_id = request_id, .tenant = context.tenant, .create_id = create_id}));
  const std::shared_ptr<Attempt> attempt = StartPost(context, std::move(full), std::move(create_id),
                                                     !request_id.empty(), ready_timeout, gate);
  const absl::StatusOr<SandboxRecord> made =
      co_await AwaitPost(attempt, ready_until, ready_timeout);
  if (!made.ok()) co_return WithLackExplained(spec, made.status());

  absl::StatusOr<SandboxRecord> usable =
      co_await parts_.usable.Wait(context, made->id, ready_until, ready_timeout);
  absl::Status error = usable.status();
  if (error.ok() && spec.network_policy) {
    error = co_await ProveDenials(parts_.client, context, made->id, spec.network_policy->rules,
                                  ready_until);
  }
  if (error.ok()) {
    CreatedSandbox created{.record = *std::move(usable), .ttl_clamped = clamped};
    if (request_id.empty()) co_return created;
    co_return co_await SettleRace(context, request_id, digest, std::move(created), ready_until,
                                  ready_timeout, gate);
  }
  if (ReasonOf(error) == R::ERROR_REASON_SANDBOX_NOT_FOUND) {
    error = MakeError(R::ERROR_REASON_SANDBOX_FAILED,
                      fmt::format("sandbox {} vanished before it could be used", made->id),
                      {.metadata = {{"sandbox_id", made->id}}});
  }
  co_return co_await GiveBack(context, made->id, error, gate);
}

}  // namespace bridge
