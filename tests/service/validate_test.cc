// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "bridge/base/error.h"
#include "google/rpc/error_details.pb.h"

namespace bridge {
namespace {

namespace pb = sandbox::bridge::v1;
using R = ErrorReason;

// The field that BadRequest names; "" when there is none.
std::string FieldOf(const absl::Status& status) {
  google::rpc::BadRequest bad;
  const auto payload = status.GetPayload(DetailTypeUrls()[2]);
  if (!payload.has_value() || !bad.ParseFromString(std::string(*payload))) return "";
  return bad.field_violations_size() == 1 ? bad.field_violations(0).field() : "";
}

MATCHER_P(Rejects, field, "is INVALID_ARGUMENT for the field") {
  *result_listener << arg.ToString();
  return arg.code() == absl::StatusCode::kInvalidArgument &&
         ReasonOf(arg) == R::ERROR_REASON_INVALID_ARGUMENT && FieldOf(arg) == field;
}

google::protobuf::Duration Proto(int64_t seconds, int32_t nanos = 0) {
  google::protobuf::Duration d;
  d.set_seconds(seconds);
  d.set_nanos(nanos);
  return d;
}

TEST(Fields, AreSpelledAsTheCallerWroteThem) {
  EXPECT_EQ(ElementField("spec.env", 2, "name"), "spec.env[2].name");
  EXPECT_EQ(ElementField("states", 0), "states[0]");
  EXPECT_EQ(KeyField("spec.metadata", "team"), "spec.metadata[\"team\"]");
  EXPECT_EQ(KeyField("set", "a\nb\"c\xff"), "set[\"a\\nb\\\"c\\xff\"]");
  EXPECT_EQ(KeyField("set", std::string(1000, 'k')).size(), std::string("set[\"\"]").size() + 64);
}

TEST(CheckId, TakesWhatUpstreamsMake) {
  for (const char* id :
       {"d243afda-1877-4235-9bde-faefeab2a817", "a", "0", "pool-x.7", "A_b-c.D", "5c337fc1"}) {
    EXPECT_TRUE(CheckSandboxId(id).ok()) << id;
  }
  EXPECT_TRUE(CheckSandboxId(std::string(253, 'a')).ok());
}

TEST(CheckId, RefusesWhatCouldReachAnotherRoute) {
  const std::string bad[] = {"",
                             "..",
                             ".",
                             "../sandboxes",
                             "a/b",
                             "a%2Fb",
                             "a?x=1",
                             "a#b",
                             "A B",
                             "a\n",
                             "-a",
                             ".a",
                             "a;b",
                             "ü",
                             "a\\b",
                             "a:80",
                             "a@b",
                             std::string("a\0b", 3),
                             "_a",
                             std::string(254, 'a'),
                             std::string(10240, 'a')};
  for (const std::string& id : bad) EXPECT_THAT(CheckSandboxId(id), Rejects("sandbox_id")) << id;
}

TEST(CheckId, NeverEchoesTheId) {
  const absl::Status status = CheckSandboxId("CANARY/\n");
  EXPECT_EQ(std::string(status.message()).find("CANARY"), std::string::npos);
}

TEST(CheckIncarnation, IsOptionalAndPlain) {
  EXPECT_TRUE(CheckIncarnation("").ok());
  EXPECT_TRUE(CheckIncarnation("2026-11-29T16:46:38.290233Z").ok());
  EXPECT_THAT(CheckIncarnation("a\tb"), Rejects("expected_incarnation"));
  EXPECT_THAT(CheckIncarnation("\xc3\xbc"), Rejects("expected_incarnation"));
  EXPECT_THAT(CheckIncarnation(std::string(129, 'x')), Rejects("expected_incarnation"));
}

TEST(CheckDuration, AcceptsTheRange) {
  const auto check = [](int64_t s, int32_t n) {
    return CheckDuration("ttl", Proto(s, n), absl::ZeroDuration(), absl::Hours(1));
  };
  EXPECT_EQ(*check(0, 0), absl::ZeroDuration());
  EXPECT_EQ(*check(1, 500'000'000), absl::Milliseconds(1500));
  EXPECT_EQ(*check(3600, 0), absl::Hours(1));
  EXPECT_THAT(check(3600, 1).status(), Rejects("ttl"));
  EXPECT_THAT(check(-1, 0).status(), Rejects("ttl"));
  EXPECT_THAT(check(0, -1).status(), Rejects("ttl"));
}

TEST(CheckDuration, SaysWhatIsWrong) {
  const auto message = [](int64_t s, absl::Duration min) {
    return std::string(CheckDuration("ttl", Proto(s), min, absl::Hours(1)).status().message());
  };
  EXPECT_EQ(message(-5, absl::ZeroDuration()), "ttl: must not be negative");
  EXPECT_EQ(message(0, absl::Nanoseconds(1)), "ttl: must be positive");
  EXPECT_EQ(message(3, absl::Seconds(60)), "ttl: must be at least 1m");
  EXPECT_EQ(message(3601, absl::ZeroDuration()), "ttl: must be at most 1h");
}

TEST(CheckDuration, RefusesMalformedOnesWithoutOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const struct {
    int64_t seconds;
    int32_t nanos;
  } kCases[] = {{kMax, 0},
                {kMin, 0},
                {kMax, 999'999'999},
                {int64_t{1} << 53, 0},
                {0, 1'000'000'000},
                {0, -1'000'000'000},
                {0, std::numeric_limits<int32_t>::max()},
                {0, std::numeric_limits<int32_t>::min()},
                {1, -1},
                {-1, 1}};
  for (const auto& c : kCases) {
    EXPECT_THAT(CheckDuration("timeout", Proto(c.seconds, c.nanos), absl::ZeroDuration(),
                              absl::InfiniteDuration())
                    .status(),
                Rejects("timeout"))
        << c.seconds << "s " << c.nanos << "ns";
  }
}

TEST(CheckTimestamp, TakesWhatTheTypeAllows) {
  google::protobuf::Timestamp t;
  t.set_seconds(1'900'000'000);
  t.set_nanos(250'000'000);
  EXPECT_EQ(*CheckTimestamp("expires_at", t),
            absl::FromUnixSeconds(1'900'000'000) + absl::Milliseconds(250));
  t.set_seconds(253'402'300'799);  // 9999-12-31T23:59:59Z
  t.set_nanos(999'999'999);
  EXPECT_TRUE(CheckTimestamp("expires_at", t).ok());
  t.set_seconds(253'402'300'800);
  EXPECT_THAT(CheckTimestamp("expires_at", t).status(), Rejects("expires_at"));
  t.set_seconds(std::numeric_limits<int64_t>::min());
  EXPECT_THAT(CheckTimestamp("expires_at", t).status(), Rejects("expires_at"));
  t.set_seconds(0);
  t.set_nanos(-1);
  EXPECT_THAT(CheckTimestamp("expires_at", t).status(), Rejects("expires_at"));
}

TEST(CheckPath, IsLiteralAndAbsolute) {
  for (const char* path : {"/", "/a b", "/~x/$HOME", "/\xc3\xbc\n", "/../x"}) {
    EXPECT_TRUE(CheckPath("path", path).ok()) << path;
  }
  const std::string bad[] = {
      "", "a", "~/x", "./x", std::string("/a\0b", 4), "/" + std::string(4096, 'x')};
  for (const std::string& path : bad) {
    const absl::Status status = CheckPath("path", path);
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_PATH_REJECTED) << path;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(status), "path");
  }
}

TEST(CheckText, LimitsBytesAndNul) {
  EXPECT_TRUE(CheckText("name", "a\nb", 3).ok());
  EXPECT_THAT(CheckText("name", "abcd", 3), Rejects("name"));
  EXPECT_THAT(CheckText("name", std::string("a\0", 2), 3), Rejects("name"));
  EXPECT_TRUE(CheckPlainText("name", "a \xc3\xbc", 9).ok());
  for (const char* text : {"a\nb", "\r", "\t", "\x7f", "\x1b[0m"}) {
    EXPECT_THAT(CheckPlainText("name", text, 9), Rejects("name"));
  }
}

TEST(CheckEnv, RefusesNamesThatAShellWouldRun) {
  const std::string bad[] = {"A;touch /tmp/pwn;B",  "A B", "1A", "", "A=B", "A\nB", "ü", "A-B",
                             std::string("A\0B", 3)};
  for (const std::string& name : bad) {
    google::protobuf::RepeatedPtrField<pb::EnvVar> env;
    env.Add()->set_name("FINE");
    env.Add()->set_name(name);
    EXPECT_THAT(CheckEnv("spec.env", env), Rejects("spec.env[1].name")) << name;
  }
}

TEST(CheckEnv, LooksAtValuesAndRepeats) {
  google::protobuf::RepeatedPtrField<pb::EnvVar> env;
  env.Add()->set_name("_A1");
  env[0].set_value("l1\nl2 $HOME `x` \" '");
  EXPECT_TRUE(CheckEnv("spec.env", env).ok());
  env.Add()->set_name("_A1");
  EXPECT_THAT(CheckEnv("spec.env", env), Rejects("spec.env[1].name"));
  env[1].set_name("B");
  env[1].set_value(std::string("SECRET\0", 7));
  const absl::Status status = CheckEnv("spec.env", env);
  EXPECT_THAT(status, Rejects("spec.env[1].value"));
  EXPECT_EQ(std::string(status.message()).find("SECRET"), std::string::npos);
}

TEST(CheckEnv, IsBounded) {
  google::protobuf::RepeatedPtrField<pb::EnvVar> env;
  for (size_t i = 0; i <= kMaxEnvVars; ++i) env.Add()->set_name("A" + std::to_string(i));
  EXPECT_THAT(CheckEnv("spec.env", env), Rejects("spec.env"));
  env.RemoveLast();
  EXPECT_TRUE(CheckEnv("spec.env", env).ok());
}

TEST(CheckUser, NameOrIds) {
  pb::User user;
  EXPECT_THAT(CheckUser("spec.user", user), Rejects("spec.user"));
  user.mutable_ids()->set_uid(0);  // root is a value
  EXPECT_TRUE(CheckUser("spec.user", user).ok());
  user.mutable_ids()->set_uid(4294967295);
  EXPECT_THAT(CheckUser("spec.user", user), Rejects("spec.user.ids.uid"));
  user.mutable_ids()->set_uid(4294967294);
  EXPECT_TRUE(CheckUser("spec.user", user).ok());
  user.mutable_ids()->set_gid(4294967295);
  EXPECT_THAT(CheckUser("spec.user", user), Rejects("spec.user.ids.gid"));
  user.set_name("www-data");
  EXPECT_TRUE(CheckUser("spec.user", user).ok());
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a:b"), std::string("a/b"),
        std::string("-rf"), std::string("a\n"), std::string("a\0", 2), std::string(257, 'a')}) {
    user.set_name(name);
    EXPECT_THAT(CheckUser("spec.user", user), Rejects("spec.user.name")) << name;
  }
}

TEST(CheckSignal, NumberOrName) {
  pb::Signal signal;
  EXPECT_THAT(CheckSignal("signal", signal).status(), Rejects("signal"));
  signal.set_number(64);
  EXPECT_EQ(*CheckSignal("signal", signal), 64);
  for (const int32_t n : {0, -9, 65, std::numeric_limits<int32_t>::max()}) {
    signal.set_number(n);
    EXPECT_THAT(CheckSignal("signal", signal).status(), Rejects("signal.number"));
  }
  signal.set_name("SIGTERM");
  EXPECT_EQ(*CheckSignal("signal", signal), 15);
  signal.set_name("KILL");
  EXPECT_EQ(*CheckSignal("signal", signal), 9);
  for (const char* name : {"", "kill", "SIGNOPE", "9"}) {
    signal.set_name(name);
    EXPECT_THAT(CheckSignal("signal", signal).status(), Rejects("signal.name")) << name;
  }
}

TEST(CheckPort, IsATcpPort) {
  EXPECT_TRUE(CheckPort("port", 1).ok());
  EXPECT_TRUE(CheckPort("port", 44772).ok());
  EXPECT_TRUE(CheckPort("port", 65535).ok());
  for (const int64_t port : {0L, -1L, 65536L, (1L << 32) + 80}) {
    EXPECT_THAT(CheckPort("port", port), Rejects("port"));
  }
}

TEST(CheckPageSize, ZeroIsTheDefault) {
  EXPECT_EQ(*CheckPageSize("page_size", 0), 50);
  EXPECT_EQ(*CheckPageSize("page_size", 1), 1);
  EXPECT_EQ(*CheckPageSize("page_size", 200), 200);
  EXPECT_THAT(CheckPageSize("page_size", -1).status(), Rejects("page_size"));
  EXPECT_THAT(CheckPageSize("page_size", 201).status(), Rejects("page_size"));
}

TEST(CheckEnum, UnknownValuesAreRefused) {
  EXPECT_TRUE(CheckEnum("spec.fidelity", 1, pb::Fidelity_IsValid(1)).ok());
  EXPECT_THAT(CheckEnum("spec.fidelity", 99, pb::Fidelity_IsValid(99)), Rejects("spec.fidelity"));
}

}  // namespace
}  // namespace bridge
