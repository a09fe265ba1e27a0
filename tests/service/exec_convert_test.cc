// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/exec_convert.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "google/rpc/error_details.pb.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

v1::ExecSpec Shell() {
  v1::ExecSpec spec;
  spec.set_shell("true");
  return spec;
}

std::string BadField(const absl::Status& status) {
  google::rpc::BadRequest bad;
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  if (!payload || !bad.ParseFromString(std::string(*payload))) return "";
  return bad.field_violations(0).field();
}

TEST(ExecSpecFromProto, TakesEverything) {
  v1::ExecSpec proto;
  for (const char* arg : {"printf", "", "a b"}) proto.mutable_argv()->add_args(arg);
  proto.set_cwd("/tmp");
  auto* variable = proto.add_env();
  variable->set_name("A");
  variable->set_value("");
  proto.mutable_user()->mutable_ids()->set_uid(0);
  proto.mutable_timeout()->set_nanos(50'000'000);
  proto.set_stdin(std::string("\0\xff", 2));
  proto.set_on_disconnect(v1::ExecSpec::ON_DISCONNECT_DETACH);
  proto.set_fidelity(v1::FIDELITY_LINES);
  const auto spec = ExecSpecFromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->argv, (std::vector<std::string>{"printf", "", "a b"}));
  EXPECT_EQ(spec->cwd, "/tmp");
  EXPECT_EQ(spec->env[0].first, "A");
  EXPECT_EQ(spec->user.uid, 0u);
  EXPECT_FALSE(spec->user.gid.has_value());
  EXPECT_EQ(spec->timeout, absl::Milliseconds(50));
  EXPECT_EQ(spec->stdin_bytes.size(), 2u);
  EXPECT_TRUE(spec->detach_on_disconnect);
  EXPECT_EQ(spec->fidelity, ExecFidelity::kLines);
}

TEST(ExecSpecFromProto, DefaultsAreTheSafeOnes) {
  const auto spec = ExecSpecFromProto(Shell());
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->timeout, absl::InfiniteDuration());
  EXPECT_FALSE(spec->detach_on_disconnect);
  EXPECT_EQ(spec->fidelity, ExecFidelity::kBytes);
  EXPECT_FALSE(spec->user.set());
}

TEST(ExecSpecFromProto, BadInputNamesItsField) {
  struct Case {
    const char* field;
    std::function<void(v1::ExecSpec&)> spoil;
  };
  const auto env = [](v1::ExecSpec& spec, std::string name, std::string value = "") {
    auto* variable = spec.add_env();
    variable->set_name(std::move(name));
    variable->set_value(std::move(value));
  };
  const std::vector<Case> cases = {
      {"spec.command", [](auto& s) { s.clear_command(); }},
      {"spec.shell", [](auto& s) { s.set_shell(""); }},
      {"spec.shell", [](auto& s) { s.set_shell(std::string("a\0b", 3)); }},
      {"spec.argv.args", [](auto& s) { s.mutable_argv(); }},
      {"spec.argv.args", [](auto& s) { s.mutable_argv()->add_args(""); }},
      {"spec.argv.args[1]",
       [](auto& s) {
         s.mutable_argv()->add_args("a");
         s.mutable_argv()->add_args(std::string("\0", 1));
       }},
      {"spec.cwd", [](auto& s) { s.set_cwd("relative"); }},
      {"spec.cwd", [](auto& s) { s.set_cwd(std::string("/a\0", 3)); }},
      {"spec.cwd", [](auto& s) { s.set_cwd("/" + std::string(5000, 'a')); }},
      {"spec.env[0].name", [&](auto& s) { env(s, "A;touch /tmp/pwn;B"); }},
      {"spec.env[0].name", [&](auto& s) { env(s, "A B"); }},
      {"spec.env[0].name", [&](auto& s) { env(s, "1A"); }},
      {"spec.env[0].name", [&](auto& s) { env(s, ""); }},
      {"spec.env[0].name", [&](auto& s) { env(s, "A=B"); }},
      {"spec.env[0].name", [&](auto& s) { env(s, "A\nB"); }},
      {"spec.env[1].name",
       [&](auto& s) {
         env(s, "A");
         env(s, "A");
       }},
      {"spec.env[0].value", [&](auto& s) { env(s, "A", std::string("\0", 1)); }},
      {"spec.timeout", [](auto& s) { s.mutable_timeout(); }},
      {"spec.timeout", [](auto& s) { s.mutable_timeout()->set_seconds(-1); }},
      {"spec.timeout", [](auto& s) { s.mutable_timeout()->set_seconds(INT64_MAX); }},
      {"spec.timeout", [](auto& s) { s.mutable_timeout()->set_seconds(365 * 86'400 + 1); }},
      {"spec.timeout", [](auto& s) { s.mutable_timeout()->set_seconds(10'000'000'000); }},
      {"spec.timeout", [](auto& s) { s.mutable_timeout()->set_nanos(2'000'000'000); }},
      {"spec.stdin", [](auto& s) { s.set_stdin(std::string((8 << 20) + 1, 'x')); }},
      {"spec.on_disconnect",
       [](auto& s) { s.set_on_disconnect(static_cast<v1::ExecSpec::OnDisconnect>(9)); }},
      {"spec.fidelity", [](auto& s) { s.set_fidelity(static_cast<v1::Fidelity>(-3)); }},
      {"spec.max_output_bytes", [](auto& s) { s.set_max_output_bytes(-1); }},
  };
  for (const Case& c : cases) {
    v1::ExecSpec spec = Shell();
    c.spoil(spec);
    const absl::Status status = ExecSpecFromProto(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.field;
    EXPECT_EQ(BadField(status), c.field) << status;
    EXPECT_EQ(status.message().find("pwn"), absl::string_view::npos);
  }
}

TEST(OutcomeToProto, EveryAlternativeIsItself) {
  const auto proto = [](const Outcome& outcome) {
    v1::Outcome p;
    OutcomeToProto(outcome, &p);
    return p;
  };
  EXPECT_EQ(proto(ExitCode{0}).kind_case(), v1::Outcome::kExitCode);
  EXPECT_EQ(proto(ExitCode{3}).exit_code(), 3);
  EXPECT_EQ(proto(Signalled{11, true}).signal().name(), "SIGSEGV");
  EXPECT_TRUE(proto(Signalled{11, true}).signal().core());
  EXPECT_EQ(proto(Signalled{}).signal().name(), "");
  EXPECT_EQ(proto(TimedOut{absl::Milliseconds(1500)}).timed_out().after().nanos(), 500'000'000);
  EXPECT_TRUE(proto(CancelledEnd{true}).cancelled().confirmed());
  EXPECT_FALSE(proto(CancelledEnd{true}).cancelled().has_signal());
  EXPECT_EQ(proto(CancelledEnd{true, Signalled{9}}).cancelled().signal().name(), "SIGKILL");
  EXPECT_EQ(proto(SpawnFailed{SpawnFailed::Kind::kBadCwd, "m"}).spawn_failed().kind(),
            v1::Outcome::SpawnFailed::KIND_BAD_CWD);
  EXPECT_TRUE(proto(Lost{"r", true}).lost().maybe_running());
}

TEST(ExecSpecFromProto, ATimeoutIsRoundedUpToMilliseconds) {
  v1::ExecSpec spec = Shell();
  for (const auto& [nanos, timeout] : {std::pair(1, 1), {1'000'000, 1}, {1'000'001, 2}}) {
    spec.mutable_timeout()->set_nanos(nanos);
    const auto converted = ExecSpecFromProto(spec);
    ASSERT_TRUE(converted.ok()) << converted.status();
    EXPECT_EQ(converted->timeout, absl::Milliseconds(timeout)) << nanos;
  }
}

TEST(ExecInfoToProto, AnUnknownIsNotFalse) {
  const auto proto = [](const ExecInfo& info) {
    v1::ExecInfo p;
    ExecInfoToProto(info, &p);
    return p;
  };
  EXPECT_FALSE(proto({}).has_still_open());
  EXPECT_FALSE(proto({.still_open = false}).still_open());
  EXPECT_TRUE(proto({.still_open = false}).has_still_open());
  EXPECT_TRUE(proto({.still_open = true}).still_open());
}

TEST(KeepaliveFromProto, HasADefaultAndBounds) {
  google::protobuf::Duration duration;
  EXPECT_EQ(*KeepaliveFromProto(false, duration), kDefaultKeepalive);
  EXPECT_FALSE(KeepaliveFromProto(true, duration).ok());
  duration.set_seconds(1);
  EXPECT_EQ(*KeepaliveFromProto(true, duration), absl::Seconds(1));
  duration.set_seconds(3601);
  EXPECT_FALSE(KeepaliveFromProto(true, duration).ok());
}

}  // namespace
}  // namespace bridge
