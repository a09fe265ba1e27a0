// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/policy_validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/fakes/status_matchers.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

TEST(CheckPolicy, BadOnes) {
  const auto rule = [](v1::NetworkPolicy& p, int action, const std::string& target) {
    auto* added = p.add_rules();
    added->set_action(static_cast<v1::NetworkPolicy::Action>(action));
    added->set_target(target);
  };
  const struct {
    const char* field;
    std::function<void(v1::NetworkPolicy&)> change;
  } kBad[] = {
      {"spec.network_policy.default_action",
       [](auto& p) { p.set_default_action(static_cast<v1::NetworkPolicy::Action>(9)); }},
      {"spec.network_policy.rules[0].action", [&](auto& p) { rule(p, 0, "a"); }},
      {"spec.network_policy.rules[0].action", [&](auto& p) { rule(p, 99, "a"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 1, ""); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 1, "a b"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 1, "https://a.example"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 1, "a.example/path"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 1, "10.0.0.0/x"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 2, "10.0.0.0/33"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 2, "10.0.0.256"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 2, "::ffff:10.0.0.1"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 2, "a.example."); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 1, "a\n"); }},
      {"spec.network_policy.rules[0].target", [&](auto& p) { rule(p, 1, std::string(256, 'a')); }},
      {"spec.network_policy.rules",
       [&](auto& p) {
         for (int i = 0; i < 1001; ++i) rule(p, 1, "a");
       }},
  };
  for (const auto& bad : kBad) {
    v1::NetworkPolicy policy;
    bad.change(policy);
    EXPECT_THAT(CheckPolicy(policy), RejectsField(bad.field));
  }
}

TEST(CheckPatchNetworkPolicy, RulesAndTargets) {
  v1::PatchNetworkPolicyRequest request;
  EXPECT_THAT(CheckPatchNetworkPolicy(request), RejectsField("add"));
  request.add_remove_targets("");
  EXPECT_THAT(CheckPatchNetworkPolicy(request), RejectsField("remove_targets[0]"));
  request.set_remove_targets(0, "a.example.com");
  EXPECT_THAT(CheckPatchNetworkPolicy(request), IsOk());
  auto* rule = request.add_add();
  rule->set_target("a.example.com");
  EXPECT_THAT(CheckPatchNetworkPolicy(request), RejectsField("add[0].action"));
  rule->set_action(v1::NetworkPolicy::ACTION_DENY);
  EXPECT_THAT(CheckPatchNetworkPolicy(request), RejectsField("remove_targets[0]"));
  rule->set_target("A.example.com");
  EXPECT_THAT(CheckPatchNetworkPolicy(request), RejectsField("remove_targets[0]"));
  rule->set_target("10.0.0.0/33");
  EXPECT_THAT(CheckPatchNetworkPolicy(request), RejectsField("add[0].target"));
  rule->set_target("10.0.0.0/32");
  EXPECT_THAT(CheckPatchNetworkPolicy(request), IsOk());
  request.set_remove_targets(0, "10.0.0.0/33");  // of somebody else's making
  EXPECT_THAT(CheckPatchNetworkPolicy(request), IsOk());
}

}  // namespace
}  // namespace bridge
