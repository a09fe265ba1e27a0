// SPDX-License-Identifier: Apache-2.0
//
// Creates whose policy denies an address: the official sidecar takes such a rule in every mode.
#include <string>
#include <utility>
#include <vector>

#include "bridge/opensandbox/sandbox_creator.h"
#include "tests/opensandbox/creator_fixture.h"
#include "tests/opensandbox/policy_answers.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::Not;

class DeniedAddressTest : public CreatorFixture {};

CreateSpec Denying(CreateSpec spec, std::vector<std::string> targets) {
  NetworkPolicy& policy = spec.network_policy.emplace();
  policy.default_action = PolicyAction::kAllow;
  for (std::string& target : targets) {
    policy.rules.push_back({.action = PolicyAction::kDeny, .target = std::move(target)});
  }
  return spec;
}

constexpr char kPolicyRoute[] = "GET /v1/sandboxes/sb-1/networkpolicy";

TEST_F(DeniedAddressTest, ADeniedAddressThatNothingGuardsIsNotMade) {
  fake_.Script(kPolicyRoute, PolicyInMode("dns"));
  EXPECT_THAT(
      Create(Denying(Spec(), {"a.example", "169.254.0.0/16"})),
      AllOf(HasReason("UNSUPPORTED_FEATURE"), HasDetail("feature", "sandboxes.network_policy"),
            HasMessage("169.254.0.0/16"), Not(HasDetail("leaked_sandbox_id", "sb-1"))));
  EXPECT_EQ(Deletes(), 1);
}

TEST_F(DeniedAddressTest, ADeniedAddressIsAskedFor) {
  fake_.Script(kPolicyRoute, PolicyInMode("dns+nft"));
  EXPECT_THAT(Create(Denying(Spec(), {"169.254.0.0/16"})), IsOk());
  EXPECT_EQ(fake_.Count(kPolicyRoute), 1);
  EXPECT_EQ(Deletes(), 0);
}

TEST_F(DeniedAddressTest, ADeniedNameCostsNoRequest) {
  fake_.Script(kPolicyRoute, PolicyInMode("dns"));
  EXPECT_THAT(Create(Denying(Spec(), {"a.example"})), IsOk());
  EXPECT_EQ(fake_.Count(kPolicyRoute), 0);
}

TEST_F(DeniedAddressTest, ASidecarMayBeSlowerThanTheDaemon) {
  fake_.endpoint_headers = {{"OPENSANDBOX-EGRESS-AUTH", "t"}};
  fake_.Script(kPolicyRoute, NoSidecar(20));
  fake_.Script(kPolicyRoute, PolicyInMode("dns+nft"));
  EXPECT_THAT(Create(Denying(Spec(), {"10.0.0.1"})), IsOk());
  EXPECT_EQ(fake_.Count(kPolicyRoute), 21);
}

TEST_F(DeniedAddressTest, ASidecarThatNeverAnswers) {
  fake_.endpoint_headers = {{"OPENSANDBOX-EGRESS-AUTH", "t"}};
  fake_.Script(kPolicyRoute, NoSidecar());
  EXPECT_THAT(Create(Denying(Spec(), {"10.0.0.1"})), HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_EQ(Deletes(), 1);
}

TEST_F(DeniedAddressTest, APolicyThatTheServerLeftOut) {
  fake_.Script(kPolicyRoute, NoSidecar());
  EXPECT_THAT(Create(Denying(Spec(), {"10.0.0.1"})), HasReason("UNSUPPORTED_FEATURE"));
  EXPECT_EQ(Deletes(), 1);
}

TEST_F(DeniedAddressTest, AServerThatCannotBeAskedMakesItAsBefore) {
  EXPECT_THAT(Create(Denying(Spec(), {"10.0.0.1"})), IsOk());  // the model has no such route
  EXPECT_EQ(Deletes(), 0);
}

}  // namespace
}  // namespace bridge
