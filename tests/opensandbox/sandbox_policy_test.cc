// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_policy.h"

#include "tests/opensandbox/lifecycle_fixture.h"
#include "tests/opensandbox/policy_answers.h"
#include "tests/opensandbox/recorded_answers.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::SizeIs;

constexpr char kRoute[] = "GET /v1/sandboxes/sb-1/networkpolicy";

class SandboxPolicyTest : public LifecycleFixture {
 protected:
  SandboxPolicyTest() { fake_.Add("sb-1"); }
  absl::StatusOr<NetworkPolicyStatus> Get() {
    return Run([&] { return GetPolicy(client_, Context(), "sb-1", ""); });
  }
  absl::StatusOr<NetworkPolicyStatus> Patch(std::vector<NetworkRule> add,
                                            std::vector<std::string> remove) {
    return Run([=, this] { return PatchPolicy(client_, Context(), "sb-1", "", add, remove); });
  }
  static FakeReply Reply(std::string_view recording, int times = 1) {
    const HttpResponse& response = Recorded(recording);
    return {.status = response.status, .body = response.body, .times = times};
  }
};

TEST_F(SandboxPolicyTest, IsRead) {
  fake_.Script(kRoute, Reply("networkpolicy-get"));
  const auto policy = Get();
  ASSERT_THAT(policy, IsOk());
  EXPECT_EQ(policy->enforcement, "dns");
  EXPECT_THAT(policy->policy.rules, SizeIs(2));
}

TEST_F(SandboxPolicyTest, ASandboxMadeWithoutOne) {
  fake_.Script(kRoute, Reply("networkpolicy-without-sidecar", -1));
  EXPECT_THAT(Get(),
              AllOf(HasReason("UNSUPPORTED_FEATURE"),
                    HasDetail("feature", "sandboxes.network_policy"), HasMessage("made without")));
}

TEST_F(SandboxPolicyTest, ASidecarThatDied) {
  fake_.endpoint_headers = {{"OPENSANDBOX-EGRESS-AUTH", "t"}};
  fake_.Script(kRoute, Reply("networkpolicy-without-sidecar", -1));
  EXPECT_THAT(Get(), AllOf(HasReason("SANDBOX_UNREACHABLE"), HasMessage("sidecar")));
}

TEST_F(SandboxPolicyTest, AServerWithoutTheRoute) {
  EXPECT_THAT(Get(), HasReason("UNSUPPORTED_FEATURE"));
}

TEST_F(SandboxPolicyTest, AGatewayThatIsDownIsNoMissingFeature) {
  fake_.Script(kRoute, {.status = 502, .times = -1});
  EXPECT_THAT(Get(), HasReason("UPSTREAM_UNAVAILABLE"));
}

TEST_F(SandboxPolicyTest, AddsRemovesAndReads) {
  fake_.Script("PATCH *", Reply("networkpolicy-patch"));
  fake_.Script("DELETE *", Reply("networkpolicy-patch"));
  fake_.Script(kRoute, Reply("networkpolicy-get"));
  ASSERT_THAT(Patch({{PolicyAction::kAllow, "a.example.net"}}, {"b.example.net"}), IsOk());
  const auto requests = fake_.requests();
  ASSERT_THAT(requests, SizeIs(4));  // the first one reads the sandbox
  EXPECT_EQ(requests[1].body, R"([{"action":"allow","target":"a.example.net"}])");
  EXPECT_EQ(requests[2].body, R"(["b.example.net"])");
  EXPECT_EQ(requests[2].path, "/v1/sandboxes/sb-1/networkpolicy");
}

TEST_F(SandboxPolicyTest, HalfDoneIsSaidSo) {
  fake_.Script("PATCH *", Reply("networkpolicy-patch"));
  fake_.Script("DELETE *", {.status = 500});
  EXPECT_THAT(Patch({{PolicyAction::kAllow, "a"}}, {"b"}),
              AllOf(HasReason("UPSTREAM_FAILED"), HasMessage("new rules are in force")));
}

TEST_F(SandboxPolicyTest, ADeniedAddressIsGuardedOrRefused) {
  fake_.Script("PATCH *", Reply("networkpolicy-patch"));
  fake_.Script(kRoute, PolicyInMode("dns+nft"));
  EXPECT_THAT(Patch({{PolicyAction::kDeny, "10.0.0.0/8"}}, {}), IsOk());
  EXPECT_EQ(fake_.Count("PATCH *"), 1);
}

TEST_F(SandboxPolicyTest, NamesOnlyTakesNoDeniedAddress) {
  fake_.Script("PATCH *", Reply("networkpolicy-patch", -1));
  fake_.Script(kRoute, PolicyInMode("dns"));
  EXPECT_THAT(
      Patch({{PolicyAction::kDeny, "a.example"}, {PolicyAction::kDeny, "10.0.0.0/8"}}, {}),
      AllOf(HasReason("UNSUPPORTED_FEATURE"), HasDetail("feature", "sandboxes.network_policy"),
            HasMessage("10.0.0.0/8"), HasMessage("dns+nft")));
  EXPECT_EQ(fake_.Count("PATCH *"), 0);
  // Reached anyhow, and names are what it is for.
  EXPECT_THAT(Patch({{PolicyAction::kAllow, "10.0.0.1"}, {PolicyAction::kDeny, "a.example"}}, {}),
              IsOk());
}

TEST_F(SandboxPolicyTest, APausedSandboxIsNotAsked) {
  fake_.Find("sb-1")->state = "Paused";
  EXPECT_THAT(Get(), AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", "Paused")));
  EXPECT_THAT(Patch({{PolicyAction::kAllow, "a"}}, {}), HasReason("SANDBOX_NOT_RUNNING"));
  EXPECT_EQ(fake_.Count(kRoute), 0);
  EXPECT_EQ(fake_.Count("PATCH *"), 0);
}

TEST_F(SandboxPolicyTest, ASidecarThatDropsTheConnection) {
  fake_.endpoint_headers = {{"OPENSANDBOX-EGRESS-AUTH", "t"}};
  fake_.Script(kRoute, {.status = 502,
                        .body = R"({"code":"BACKEND_RESPONSE_FAILED","message":"disconnected"})",
                        .times = -1});
  EXPECT_THAT(Get(), AllOf(HasReason("SANDBOX_UNREACHABLE"), HasMessage("sidecar")));
}

TEST_F(SandboxPolicyTest, OthersAreNotTouched) {
  CallContext red = Context();
  red.tenant = "red";
  EXPECT_THAT(Run([&] { return PatchPolicy(client_, red, "sb-1", "", {}, {"b"}); }),
              HasReason("NOT_YOUR_SANDBOX"));
  EXPECT_EQ(fake_.Count("DELETE *"), 0);
}

}  // namespace
}  // namespace bridge
