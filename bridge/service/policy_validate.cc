// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/policy_validate.h"

#include <set>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/network_target.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr int kMaxRules = 1000;
constexpr size_t kMaxTargetBytes = 255;

absl::Status CheckTarget(std::string_view field, std::string_view target) {
  RETURN_IF_ERROR(CheckPlainText(field, target, kMaxTargetBytes));
  if (target.empty()) return InvalidField(field, "must not be empty");
  if (target.find(' ') != std::string_view::npos) {
    return InvalidField(field, "must not hold blanks");
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const std::string& field, std::string_view target) {
  switch (KindOfTarget(target)) {
    case NetworkTarget::kName:
    case NetworkTarget::kAddress:
      return absl::OkStatus();
    case NetworkTarget::kMapped:
      return InvalidField(field, "must be the IPv4 address; mapped to IPv6 it matches nothing");
    case NetworkTarget::kNothing:
      break;
  }
  return InvalidField(field,
                      "must be a name (ASCII, without a dot at its end), \"*.\" and a name, an "
                      "address or a network (\"10.0.0.0/8\"); not a URL, a port or a range");
}

template <class Rules>
absl::Status CheckRules(std::string_view field, const Rules& rules) {
  if (rules.size() > kMaxRules) return InvalidField(field, "has more than 1000 rules");
  for (int i = 0; i < rules.size(); ++i) {
    const auto& rule = rules[i];
    const size_t index = static_cast<size_t>(i);
    const std::string action = ElementField(field, index, "action");
    RETURN_IF_ERROR(
        CheckEnum(action, rule.action(), v1::NetworkPolicy::Action_IsValid(rule.action())));
    // The server takes any word for an action and then waits half a minute for its sidecar.
    if (rule.action() == v1::NetworkPolicy::ACTION_UNSPECIFIED) {
      return InvalidField(action, "must be ALLOW or DENY");
    }
    const std::string target = ElementField(field, index, "target");
    RETURN_IF_ERROR(CheckTarget(target, rule.target()));
    RETURN_IF_ERROR(CheckKind(target, rule.target()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPolicy(const v1::NetworkPolicy& policy) {
  RETURN_IF_ERROR(CheckEnum("spec.network_policy.default_action", policy.default_action(),
                            v1::NetworkPolicy::Action_IsValid(policy.default_action())));
  return CheckRules("spec.network_policy.rules", policy.rules());
}

absl::Status CheckPatchNetworkPolicy(const v1::PatchNetworkPolicyRequest& request) {
  RETURN_IF_ERROR(CheckRules("add", request.add()));
  if (request.remove_targets_size() > kMaxRules) {
    return InvalidField("remove_targets", "has more than 1000 targets");
  }
  std::set<std::string> added;  // the sidecar makes no difference between a and A
  for (const auto& rule : request.add()) added.insert(absl::AsciiStrToLower(rule.target()));
  for (int i = 0; i < request.remove_targets_size(); ++i) {
    const std::string field = ElementField("remove_targets", static_cast<size_t>(i));
    RETURN_IF_ERROR(CheckTarget(field, request.remove_targets(i)));
    if (added.contains(absl::AsciiStrToLower(request.remove_targets(i)))) {
      return InvalidField(field, "is also added");
    }
  }
  if (request.add().empty() && request.remove_targets().empty()) {
    return InvalidField("add", "or remove_targets must be given");
  }
  return absl::OkStatus();
}

}  // namespace bridge
