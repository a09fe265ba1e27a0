// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_expiry.h"

#include <nlohmann/json.hpp>

#include "bridge/opensandbox/labels.h"
#include "bridge/opensandbox/timestamps.h"
#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::SizeIs;

class SandboxExpiryTest : public LifecycleFixture {
 protected:
  SandboxExpiryTest() { fake_.Add("sb-1").expires_at = clock_.Now() + absl::Hours(1); }

  absl::StatusOr<Expiry> Set(std::optional<absl::Duration> ttl, bool never_shorten = false) {
    return Run([=, this] {
      return SetExpiry(client_, Context(), "sb-1", "",
                       {.ttl = ttl, .never_shorten = never_shorten});
    });
  }
  absl::Time ServerNow() { return clock_.Now() + fake_.clock_skew; }
  int Renewals() { return fake_.Count("POST /v1/sandboxes/sb-1/renew-expiration"); }
  absl::Time Asked() {
    for (const SeenRequest& seen : fake_.requests()) {
      if (seen.method == "POST") {
        return ParseTimestamp(nlohmann::json::parse(seen.body)["expiresAt"].get<std::string>())
            .value();
      }
    }
    return absl::InfinitePast();
  }
};

TEST_F(SandboxExpiryTest, CountsOnTheServersClock) {
  for (const absl::Duration skew : {absl::ZeroDuration(), absl::Hours(5), -absl::Hours(5)}) {
    fake_.ForgetRequests();
    fake_.clock_skew = skew;
    const auto expiry = Set(absl::Minutes(10));
    ASSERT_THAT(expiry, IsOk());
    EXPECT_FALSE(expiry->clamped);
    EXPECT_GE(*expiry->expires_at - ServerNow(), absl::Minutes(10));
    EXPECT_LE(*expiry->expires_at - ServerNow(), absl::Minutes(10) + absl::Seconds(1));
    EXPECT_EQ(fake_.Find("sb-1")->expires_at, expiry->expires_at);
    EXPECT_THAT(fake_.requests(), SizeIs(2));  // the answer is as asked: no third
  }
}

TEST_F(SandboxExpiryTest, ShortensWhenAskedTo) {
  const auto expiry = Set(absl::Minutes(2));
  EXPECT_LE(*expiry->expires_at - ServerNow(), absl::Minutes(2) + absl::Seconds(1));
}

TEST_F(SandboxExpiryTest, RaisesToTheMinimumAndSaysSo) {
  for (const absl::Duration ttl : {absl::Milliseconds(1), absl::Seconds(1), absl::Seconds(59)}) {
    const auto expiry = Set(ttl);
    EXPECT_TRUE(expiry->clamped);
    EXPECT_GE(*expiry->expires_at - ServerNow(), absl::Seconds(60));
  }
  EXPECT_FALSE(Set(absl::Seconds(60))->clamped);
}

TEST_F(SandboxExpiryTest, NeverShortens) {
  const auto kept = Set(absl::Minutes(10), true);
  EXPECT_TRUE(kept->unchanged);
  EXPECT_EQ(kept->expires_at, clock_.Now() + absl::Hours(1));
  EXPECT_EQ(Renewals(), 0);
  const auto moved = Set(absl::Hours(2), true);
  EXPECT_FALSE(moved->unchanged);
  EXPECT_EQ(Renewals(), 1);
}

TEST_F(SandboxExpiryTest, AnswersWhatWasStored) {
  // 200 with the old time: nothing moved, and that is what is told.
  const std::string old = FormatTimestamp(clock_.Now() + absl::Hours(1));
  fake_.Script("POST *", {.status = 200, .body = R"({"expiresAt":")" + old + "\"}"});
  const auto unmoved = Set(absl::Hours(3));
  ASSERT_THAT(unmoved, IsOk());
  EXPECT_EQ(unmoved->expires_at, clock_.Now() + absl::Hours(1));
  // 200 that claims what was not stored.
  fake_.Script("POST *", {.status = 200, .body = R"({"expiresAt":"2099-01-01T00:00:00Z"})"});
  EXPECT_EQ(Set(absl::Hours(3))->expires_at, clock_.Now() + absl::Hours(1));
  // 200 that says nothing.
  fake_.Script("POST *", {.status = 200, .body = "{}"});
  EXPECT_EQ(Set(absl::Hours(3))->expires_at, clock_.Now() + absl::Hours(1));
}

TEST_F(SandboxExpiryTest, TheServersRefusal) {
  fake_.Script(
      "POST *",
      {.status = 400, .body = R"({"code":"DOCKER::INVALID_EXPIRATION","message":"only later"})"});
  EXPECT_THAT(Set(absl::Minutes(2)),
              AllOf(HasReason("UPSTREAM_REJECTED"), HasMessage("only later")));
}

TEST_F(SandboxExpiryTest, ASandboxWithoutAnExpiry) {
  OnLoop([&] { fake_.Find("sb-1")->expires_at = std::nullopt; });
  const auto refused = Set(absl::Minutes(10));
  EXPECT_THAT(refused, HasReason("NO_EXPIRY"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  const auto never = Set(std::nullopt);
  ASSERT_THAT(never, IsOk());
  EXPECT_EQ(never->expires_at, std::nullopt);
}

TEST_F(SandboxExpiryTest, NeverIsNotToBeHadLater) {
  EXPECT_THAT(Set(std::nullopt),
              AllOf(HasReason("UNSUPPORTED_FEATURE"), HasDetail("feature", "sandboxes.never")));
  EXPECT_EQ(Renewals(), 0);
}

TEST_F(SandboxExpiryTest, APausedSandboxOfKubernetesIsNotRenewed) {
  OnLoop([&] {
    fake_.Find("sb-1")->state = "Paused";
    fake_.Find("sb-1")->reason = "PAUSED";
  });
  EXPECT_THAT(Set(absl::Hours(2)), AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasMessage("resume")));
  EXPECT_EQ(Renewals(), 0);
  // On Docker it may be.
  OnLoop([&] { fake_.Find("sb-1")->reason = "CONTAINER_PAUSED"; });
  EXPECT_THAT(Set(absl::Hours(2)), IsOk());
}

TEST_F(SandboxExpiryTest, WithoutADateTheBridgesClockCounts) {
  fake_.send_date = false;
  ASSERT_THAT(Set(absl::Minutes(10)), IsOk());
  EXPECT_EQ(Asked(), clock_.Now() + absl::Minutes(10));
}

TEST_F(SandboxExpiryTest, OthersAreNotTouched) {
  CallContext red = Context();
  red.tenant = "red";
  EXPECT_THAT(Run([&] { return SetExpiry(client_, red, "sb-1", "", {.ttl = absl::Hours(1)}); }),
              HasReason("NOT_YOUR_SANDBOX"));
  EXPECT_THAT(
      Run([&] { return SetExpiry(client_, Context(), "sb-1", "old", {.ttl = absl::Hours(1)}); }),
      HasReason("STALE_INCARNATION"));
  EXPECT_EQ(Renewals(), 0);
}

}  // namespace
}  // namespace bridge
