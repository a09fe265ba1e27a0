// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/call_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using R = ErrorReason;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Method kUnary = UnaryMethod("test.Service/Unary");
constexpr Method kStream = StreamingMethod("test.Service/Stream");
constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// A call without gRPC.
class PlainEntry final : public CallHost::Entry {
 public:
  using Entry::Entry;
  Interruption interrupted = Interruption::kNone;

 private:
  void Interrupt(Interruption why) override { interrupted = why; }
};

// The tenant is the token.
class TokenIsTenant final : public Authenticator {
 public:
  absl::StatusOr<Caller> Authenticate(std::string_view authorization) override {
    if (authorization.empty()) {
      return MakeError(R::ERROR_REASON_CALLER_UNAUTHENTICATED, "no token");
    }
    return Caller{std::string(authorization)};
  }
};

TEST(CallHost, AdmitsUpToTheLimitAndAgainAfterwards) {
  CallHost host({.limits = {.global = {.calls = 2, .streams = 1}}});
  auto a = host.Admit(kUnary, {});
  auto b = host.Admit(kUnary, {});
  ASSERT_TRUE(a.ok() && b.ok());
  const auto c = host.Admit(kUnary, {});
  EXPECT_EQ(ReasonOf(c.status()), R::ERROR_REASON_TOO_MANY_STREAMS);
  EXPECT_EQ(MetadataOf(c.status())["limit"], "calls");
  EXPECT_EQ(RetryAfterOf(c.status()), absl::Seconds(1));

  auto stream = host.Admit(kStream, {});  // counted apart
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(MetadataOf(host.Admit(kStream, {}).status())["limit"], "streams");

  a->ticket.Return();
  EXPECT_TRUE(host.Admit(kUnary, {}).ok());
}

TEST(CallHost, CountsBytesOfRequestsAndOfWhatCallsHold) {
  CallHost host({.limits = {.global = {.bytes = 1000}}});
  Method big = kUnary;
  big.request_bytes = 600;
  auto first = host.Admit(big, {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(MetadataOf(host.Admit(big, {}).status())["limit"], "bytes");
  EXPECT_TRUE(first->ticket.Hold(400).ok());
  EXPECT_EQ(ReasonOf(first->ticket.Hold(1)), R::ERROR_REASON_TOO_MANY_STREAMS);
  EXPECT_TRUE(first->ticket.Hold(-700).ok());
  EXPECT_TRUE(host.Admit(big, {}).ok());
  EXPECT_TRUE(first->ticket.Hold(-1'000'000).ok());  // no more than was held
  auto all = host.Admit(kUnary, {});
  EXPECT_TRUE(all->ticket.Hold(1000).ok());
  EXPECT_FALSE(all->ticket.Hold(1).ok());
}

TEST(CallHost, ATenantAtItsLimitDoesNotStopAnother) {
  TokenIsTenant authenticator;
  CallHost host(
      {.limits = {.global = {}, .per_tenant = {.streams = 1}}, .authenticator = &authenticator});
  auto red = host.Admit(kStream, {.authorization = "red"});
  ASSERT_TRUE(red.ok());
  EXPECT_EQ(red->context.tenant, "red");
  EXPECT_EQ(MetadataOf(host.Admit(kStream, {.authorization = "red"}).status())["limit"],
            "tenant_streams");
  EXPECT_TRUE(host.Admit(kStream, {.authorization = "blue"}).ok());
}

TEST(CallHost, ARefusedCallTakesNothing) {
  TokenIsTenant authenticator;
  CallHost host({.limits = {.global = {.calls = 1}, .per_tenant = {.bytes = 10}},
                 .authenticator = &authenticator});
  Method big = kUnary;
  big.request_bytes = 11;
  EXPECT_EQ(MetadataOf(host.Admit(big, {.authorization = "red"}).status())["limit"],
            "tenant_bytes");
  EXPECT_TRUE(host.Admit(kUnary, {.authorization = "red"}).ok());
}

TEST(CallHost, WithoutAValidCallerNothingRuns) {
  TokenIsTenant authenticator;
  CallHost host({.authenticator = &authenticator});
  EXPECT_EQ(ReasonOf(host.Admit(kUnary, {}).status()), R::ERROR_REASON_CALLER_UNAUTHENTICATED);
}

TEST(CallHost, DrainingRefusesBeforeAskingWhoItIs) {
  TokenIsTenant authenticator;
  CallHost host({.authenticator = &authenticator});
  EXPECT_FALSE(host.draining());
  host.StartDraining(absl::Milliseconds(2500));
  const absl::Status status = host.Admit(kUnary, {}).status();
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_DRAINING);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RetryAfterOf(status), absl::Milliseconds(2500));
}

TEST(CallHost, TheCallersKeyGoesBeforeTheBridges) {
  CallHost host({.api_key = "bridges", .forward_api_keys = true});
  EXPECT_EQ(host.Admit(kUnary, {})->context.api_key, "bridges");
  EXPECT_EQ(host.Admit(kUnary, {.api_key = "callers"})->context.api_key, "callers");
  host.SetApiKey("rotated");
  EXPECT_EQ(host.Admit(kUnary, {})->context.api_key, "rotated");
}

TEST(CallHost, AKeyThatIsNotForwardedIsRefusedNotIgnored) {
  CallHost host({.api_key = "bridges"});
  const absl::Status status = host.Admit(kUnary, {.api_key = "callers-secret"}).status();
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_UNSUPPORTED_FEATURE);
  EXPECT_EQ(MetadataOf(status)["feature"], "caller_api_key");
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("callers-secret")));
}

TEST(CallHost, AKeyThatCouldSplitAHeaderIsRefused) {
  CallHost host({.forward_api_keys = true});
  for (const std::string& key : {std::string("a\r\nb"), std::string("a b"), std::string(5000, 'k'),
                                 std::string("a\0b", 3)}) {
    EXPECT_EQ(ReasonOf(host.Admit(kUnary, {.api_key = key}).status()),
              R::ERROR_REASON_INVALID_ARGUMENT);
  }
}

TEST(CallHost, RepeatedMetadataIsRefused) {
  CallHost host({});
  const absl::Status status = host.Admit(kUnary, {.repeated = "authorization"}).status();
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_THAT(std::string(status.message()), HasSubstr("authorization"));
}

TEST(CallHost, OnlyARealTraceContextIsPassedOn) {
  CallHost host({});
  EXPECT_EQ(host.Admit(kUnary, {.traceparent = kTrace})->context.traceparent, kTrace);
  EXPECT_EQ(TraceIdOf(kTrace), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(host.Admit(kUnary, {.traceparent = "nonsense\n"})->context.traceparent, "");
  EXPECT_EQ(TraceIdOf(""), "");
}

TEST(IsTraceparent, FollowsTheW3cGrammar) {
  EXPECT_TRUE(IsTraceparent(kTrace));
  for (const char* bad : {
           "",
           "00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",   // upper case
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",   // all zero
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",   // all zero
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",   // forbidden version
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",  // too long
           "00x4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
       }) {
    EXPECT_FALSE(IsTraceparent(bad)) << bad;
  }
}

TEST(CallHost, KnowsItsLiveCallsOldestFirst) {
  FakeClock clock;
  CallHost host({.clock = &clock});
  EXPECT_EQ(host.DescribeLiveCalls(), "");
  auto first = std::make_unique<PlainEntry>(host, "s/First");
  clock.Advance(absl::Milliseconds(1500));
  PlainEntry second(host, "s/Second");
  auto third = std::make_unique<PlainEntry>(host, "s/Third");
  second.set_waiting_for("the upstream's answer");
  clock.Advance(absl::Milliseconds(250));
  EXPECT_EQ(host.live(), 3);
  EXPECT_EQ(host.DescribeLiveCalls(),
            "age=1.750s method=s/First waiting_for=\"start\"\n"
            "age=0.250s method=s/Second waiting_for=\"the upstream's answer\"\n"
            "age=0.250s method=s/Third waiting_for=\"start\"\n");
  first.reset();
  third.reset();
  EXPECT_EQ(host.live(), 1);
  ASSERT_EQ(host.LiveCalls().size(), 1u);
  EXPECT_STREQ(host.LiveCalls()[0].method, "s/Second");
}

TEST(CallHost, InterruptAllReachesEveryCallThatIsStillThere) {
  CallHost host({});
  PlainEntry first(host, "s/First");
  auto second = std::make_unique<PlainEntry>(host, "s/Second");
  PlainEntry third(host, "s/Third");
  second.reset();
  host.InterruptAll();
  EXPECT_EQ(first.interrupted, Interruption::kDraining);
  EXPECT_EQ(third.interrupted, Interruption::kDraining);
}

TEST(CallHost, CountsRightUnderManyThreads) {
  CallHost host({.limits = {.global = {.calls = 3}}});
  std::atomic<int> inside{0}, refused{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        auto ticket = host.Admit(kUnary, {});
        if (!ticket.ok()) {
          ++refused;
          continue;
        }
        EXPECT_LE(++inside, 3);
        PlainEntry entry(host, "s/M");
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(host.live(), 0);
  for (int i = 0; i < 1; ++i) EXPECT_TRUE(host.Admit(kUnary, {}).ok());
}

TEST(CallHostDeathTest, DiesRatherThanLeaveCallsWithoutTheirHost) {
  EXPECT_DEATH(
      {
        auto host = std::make_unique<CallHost>(CallHost::Options{});
        auto* entry = new PlainEntry(*host, "s/M");
        (void)entry;
        host.reset();
      },
      "1 calls are left");
}

}  // namespace
}  // namespace bridge
