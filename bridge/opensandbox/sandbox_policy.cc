// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_policy.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/backoff.h"
#include "bridge/opensandbox/network_target.h"
#include "bridge/opensandbox/sandbox_access.h"
#include "bridge/opensandbox/sandbox_reader.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using R = ErrorReason;

constexpr int kSidecarPort = 18080;
constexpr char kSidecarAuth[] = "OPENSANDBOX-EGRESS-AUTH";
// The word of a sidecar that takes rules for addresses and applies none of them.
constexpr char kNamesOnly[] = "dns";
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

bool SidecarIsSilent(const absl::Status& failure) {
  const auto metadata = MetadataOf(failure);
  const auto code = metadata.find("upstream_code");
  return ReasonOf(failure) == R::ERROR_REASON_UPSTREAM_UNAVAILABLE && code != metadata.end() &&
         (code->second.find("BACKEND_CONNECTION_FAILED") != std::string::npos ||
          code->second.find("BACKEND_RESPONSE_FAILED") != std::string::npos);
}

// The server answers a dead sidecar and one that never was with the same 502. Only a sandbox that
// was made with a policy has credentials for it.
Task<absl::Status> Explained(LifecycleClient& client, CallContext context, std::string sandbox_id,
                             absl::Status failure) {
  if (!SidecarIsSilent(failure)) co_return failure;
  const absl::StatusOr<Endpoint> endpoint =
      co_await client.GetEndpoint(context, sandbox_id, kSidecarPort, false);
  if (!endpoint.ok()) co_return failure;
  if (endpoint->headers.Has(kSidecarAuth)) {
    co_return MakeError(R::ERROR_REASON_SANDBOX_UNREACHABLE,
                        fmt::format("the egress sidecar of sandbox {} does not answer", sandbox_id),
                        {.metadata = {{"sandbox_id", sandbox_id}}});
  }
  co_return MakeError(
      R::ERROR_REASON_UNSUPPORTED_FEATURE,
      fmt::format("sandbox {} was made without a network policy; it cannot be given one later",
                  sandbox_id),
      {.metadata = {{"feature", "sandboxes.network_policy"}, {"sandbox_id", sandbox_id}}});
}

// A frozen sidecar takes connections and answers nothing, so the state is read first.
Task<absl::Status> CheckRunning(LifecycleClient& client, CallContext context,
                                std::string sandbox_id, std::string incarnation) {
  CO_ASSIGN_OR_RETURN(const Reading reading,
                      co_await ReadSandbox(client, context, sandbox_id, incarnation));
  if (reading.record.state == SandboxState::kRunning) co_return absl::OkStatus();
  co_return NotRunning(reading.record);
}

Task<absl::StatusOr<NetworkPolicyStatus>> ReadPolicy(LifecycleClient& client, CallContext context,
                                                     std::string sandbox_id) {
  absl::StatusOr<NetworkPolicyStatus> policy =
      co_await client.GetNetworkPolicy(context, sandbox_id);
  if (policy.ok()) co_return policy;
  co_return co_await Explained(client, context, sandbox_id, policy.status());
}

std::vector<NetworkRule>::const_iterator DeniedAddress(const std::vector<NetworkRule>& rules) {
  return std::find_if(rules.begin(), rules.end(), [](const NetworkRule& rule) {
    return rule.action != PolicyAction::kAllow &&
           KindOfTarget(rule.target) == NetworkTarget::kAddress;
  });
}

absl::Status NotGuarded(const NetworkRule& rule) {
  return MakeError(
      R::ERROR_REASON_UNSUPPORTED_FEATURE,
      fmt::format(
          "this upstream's egress sidecar guards names only (mode \"dns\") and would let {} "
          "be reached: leave the rule out, or give the server mode \"dns+nft\" in [egress]",
          rule.target),
      {.metadata = {{"feature", "sandboxes.network_policy"}}});
}

}  // namespace

Task<absl::Status> ProveDenials(LifecycleClient& client, CallContext context,
                                std::string sandbox_id, std::vector<NetworkRule> rules,
                                absl::Duration until) {
  const auto denied = DeniedAddress(rules);
  if (denied == rules.end()) co_return absl::OkStatus();
  Backoff pauses = Backoff::Steady(kFirstPause, kLongestPause);
  while (true) {
    const absl::StatusOr<NetworkPolicyStatus> policy =
        co_await client.GetNetworkPolicy(context, sandbox_id);
    if (policy.ok()) {
      co_return policy->enforcement == kNamesOnly ? NotGuarded(*denied) : absl::OkStatus();
    }
    if (ReasonOf(policy.status()) == R::ERROR_REASON_UNSUPPORTED_FEATURE) {
      co_return absl::OkStatus();  // no such route
    }
    const absl::Status failure = co_await Explained(client, context, sandbox_id, policy.status());
    const R reason = ReasonOf(failure);
    const absl::Duration pause = pauses.Next();
    bool again = (reason == R::ERROR_REASON_UPSTREAM_UNAVAILABLE ||
                  reason == R::ERROR_REASON_SANDBOX_UNREACHABLE) &&
                 client.loop().Now() + pause < until;
    if (again) again = co_await client.loop().Sleep(pause);
    if (!again) co_return failure;
  }
}

Task<absl::StatusOr<NetworkPolicyStatus>> GetPolicy(LifecycleClient& client, CallContext context,
                                                    std::string sandbox_id,
                                                    std::string incarnation) {
  CO_RETURN_IF_ERROR(co_await CheckRunning(client, context, sandbox_id, incarnation));
  co_return co_await ReadPolicy(client, context, sandbox_id);
}

Task<absl::StatusOr<NetworkPolicyStatus>> PatchPolicy(LifecycleClient& client, CallContext context,
                                                      std::string sandbox_id,
                                                      std::string incarnation,
                                                      std::vector<NetworkRule> add,
                                                      std::vector<std::string> remove_targets) {
  CO_RETURN_IF_ERROR(co_await CheckRunning(client, context, sandbox_id, incarnation));
  CO_RETURN_IF_ERROR(co_await ProveDenials(client, context, sandbox_id, add, absl::ZeroDuration()));
  const bool adds = !add.empty();
  if (adds) {
    const absl::Status added = co_await client.AddNetworkRules(context, sandbox_id, std::move(add));
    if (!added.ok()) co_return co_await Explained(client, context, sandbox_id, added);
  }
  if (!remove_targets.empty()) {
    const absl::Status removed =
        co_await client.RemoveNetworkTargets(context, sandbox_id, std::move(remove_targets));
    if (!removed.ok()) {
      const absl::Status failure = co_await Explained(client, context, sandbox_id, removed);
      co_return adds ? WithContext(failure, "the new rules are in force, none was removed")
                     : failure;
    }
  }
  co_return co_await ReadPolicy(client, context, sandbox_id);
}

}  // namespace bridge
