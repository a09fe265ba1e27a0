// SPDX-License-Identifier: Apache-2.0
//
// What a host asks for as the bridge's request, and the bridge's outcome as the host's numbers.
#include <string>

#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/exec_methods.h"
#include "frontends/epp/exec_output.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What the SDK sends for commands.run("echo hi").
Json ExecParams(Json changes = Json::object()) {
  Json params = {{"sandbox_id", "sb"}, {"cmd", "echo"}, {"args", {"hi"}}, {"env", Json::object()},
                 {"cwd", ""},          {"user", ""},    {"timeout", 60}};
  params.update(changes);
  return params;
}

absl::StatusOr<v1::ExecuteRequest> Made(Json changes) {
  const Json params = ExecParams(std::move(changes));
  return MakeExecuteRequest(Params(params));
}

TEST(MakeExecuteRequest, KeepsTheArgumentsExactly) {
  const std::vector<std::string> args = {"", "-x", "a'b\"c", "$HOME", "new\nline", "中"};
  const auto request = Made({{"args", args}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->spec().argv().args(),
              ElementsAre("echo", "", "-x", "a'b\"c", "$HOME", "new\nline", "中"));
  EXPECT_THAT(Made({{"argv", {"x", "y"}}})->spec().argv().args(), ElementsAre("x", "y"));
}

TEST(MakeExecuteRequest, PassesTheRestOn) {
  const auto request = Made({{"cwd", "/tmp"},
                             {"user", "1000"},
                             {"env", {{"A", 1}, {"B", nullptr}}},
                             {"timeout", 2.5},
                             {"stdin", "in\n"}});
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::ExecSpec& spec = request->spec();
  EXPECT_EQ(request->sandbox_id(), "sb");
  EXPECT_EQ(spec.cwd(), "/tmp");
  EXPECT_EQ(spec.user().ids().uid(), 1000u);
  ASSERT_EQ(spec.env_size(), 1);
  EXPECT_EQ(spec.env(0).value(), "1");
  EXPECT_EQ(spec.timeout().seconds(), 2);
  EXPECT_EQ(spec.timeout().nanos(), 500'000'000);
  EXPECT_EQ(spec.stdin(), "in\n");
  EXPECT_EQ(spec.fidelity(), v1::FIDELITY_BEST);
  EXPECT_FALSE(request->has_keepalive_interval());
  EXPECT_EQ(Made({{"stdin_b64", "AP8="}})->spec().stdin(), std::string("\0\xFF", 2));
}

TEST(MakeExecuteRequest, TakesNoLimitFromOddTimeouts) {
  for (const Json& odd : {Json(0), Json(-3), Json(nullptr), Json(std::string("\0NaN", 4)),
                          Json(std::string("\0Infinity", 9)), Json("-1")}) {
    const auto request = Made({{"timeout", odd}});
    ASSERT_TRUE(request.ok()) << odd << request.status();
    EXPECT_FALSE(request->spec().has_timeout()) << odd;
    // Silence would make the host give up after five seconds.
    EXPECT_EQ(request->keepalive_interval().seconds(), 1) << odd;
  }
  EXPECT_EQ(Made({{"timeout", "2"}})->spec().timeout().seconds(), 2);
  EXPECT_EQ(Made({{"timeout", 1e300}})->spec().timeout().seconds(), 365 * 24 * 3600);
}

TEST(MakeExecuteRequest, RefusesBeforeAnythingIsSent) {
  const auto code = [](Json changes) { return ToEppError(Made(std::move(changes)).status()).code; };
  EXPECT_EQ(code({{"cmd", ""}}), kConfigError);
  EXPECT_EQ(code({{"cmd", "  "}}), kConfigError);
  EXPECT_EQ(code({{"cmd", std::string("a\0b", 3)}}), kConfigError);
  EXPECT_EQ(code({{"args", {std::string("\0", 1)}}}), kConfigError);
  EXPECT_EQ(code({{"cwd", std::string("/\0", 2)}}), kConfigError);
  EXPECT_EQ(code({{"env", {{"A", Json::array()}}}}), kConfigError);
  EXPECT_EQ(code({{"timeout", "soon"}}), kConfigError);
  EXPECT_EQ(code({{"stdin", std::string("\0", 1)}}), kConfigError);
  EXPECT_EQ(code({{"stdin_b64", "!"}}), kConfigError);
  EXPECT_EQ(code({{"cmd", 5}}), kInvalidParams);
  EXPECT_EQ(code({{"args", "x"}}), kInvalidParams);
  EXPECT_EQ(code({{"argv", Json::array()}}), kConfigError);
  // 96 KiB in one argument is what MCP tasks send; Linux takes 128 KiB less a byte.
  EXPECT_TRUE(Made({{"args", {std::string(96 * 1024, 'x')}}}).ok());
  EXPECT_TRUE(Made({{"args", {std::string(131'071, 'x')}}}).ok());
  EXPECT_EQ(code({{"args", {std::string(131'072, 'x')}}}), kProviderError);
}

TEST(ReportOutcome, AlwaysHasAnInteger) {
  v1::Outcome outcome;
  const auto code = [&outcome] { return ReportOutcome(outcome).code; };
  outcome.set_exit_code(3);
  EXPECT_EQ(code(), 3);
  outcome.mutable_signal()->set_number(15);
  EXPECT_EQ(code(), 143);
  EXPECT_EQ(ReportOutcome(outcome).signal, "SIGTERM");
  outcome.mutable_signal()->set_number(0);
  EXPECT_EQ(code(), 128);
  outcome.mutable_timed_out();
  EXPECT_EQ(code(), 124);
  EXPECT_EQ(ReportOutcome(outcome).reason, "timeout");
  outcome.mutable_cancelled();
  EXPECT_EQ(code(), 130);
  outcome.mutable_cancelled()->mutable_signal()->set_number(9);
  EXPECT_EQ(code(), 137);
  outcome.mutable_spawn_failed()->set_kind(v1::Outcome::SpawnFailed::KIND_NOT_FOUND);
  EXPECT_EQ(code(), 127);
  outcome.mutable_spawn_failed()->set_kind(v1::Outcome::SpawnFailed::KIND_NOT_EXECUTABLE);
  EXPECT_EQ(code(), 126);
  outcome.mutable_lost()->set_reason("the stream broke");
  outcome.mutable_lost()->set_maybe_running(true);
  EXPECT_EQ(code(), 125);
  EXPECT_THAT(ReportOutcome(outcome).message, HasSubstr("the stream broke; it may still run"));
  EXPECT_EQ(ReportOutcome(v1::Outcome()).code, 125);
}

}  // namespace
}  // namespace bridge::epp
