// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/exec_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace bridge::local::execd::extra {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The field that is to blame, "" for a good request.
std::string Blamed(const std::string& body) {
  ExecSpec spec;
  const auto failure = ParseExecSpec(body, &spec);
  if (!failure) return "";
  EXPECT_EQ(failure->status, 400);
  return failure->field.empty() ? "body" : failure->field;
}

TEST(ExecSpec, Defaults) {
  ExecSpec spec;
  ASSERT_FALSE(ParseExecSpec(R"({"argv":["true"]})", &spec));
  EXPECT_THAT(spec.argv, ElementsAre("true"));
  EXPECT_TRUE(spec.kill_on_disconnect);
  EXPECT_TRUE(spec.stream);
  EXPECT_FALSE(spec.stdin_pipe);
  EXPECT_EQ(spec.timeout, absl::InfiniteDuration());
  EXPECT_EQ(spec.drain, absl::Seconds(1));
  EXPECT_EQ(spec.heartbeat, absl::Seconds(15));
  EXPECT_EQ(spec.retain_bytes, 8 << 20);
}

TEST(ExecSpec, Everything) {
  ExecSpec spec;
  ASSERT_FALSE(ParseExecSpec(
      R"({"shell":"x","env":{"A":"1"},"clear_env":true,"cwd":"/$a","uid":0,"gid":5,"stdin_b64":"AP8=",)"
      R"("timeout_ms":7,"on_disconnect":"detach","stream":false,"retain_bytes":65536,"drain_ms":0,)"
      R"("heartbeat_ms":100})",
      &spec));
  EXPECT_EQ(spec.shell, "x");
  EXPECT_EQ(spec.cwd, "/$a");
  EXPECT_EQ(spec.uid, 0u);
  EXPECT_EQ(spec.gid, 5u);
  EXPECT_TRUE(spec.stdin_pipe);
  EXPECT_EQ(spec.input, std::string("\0\xff", 2));
  EXPECT_EQ(spec.timeout, absl::Milliseconds(7));
  EXPECT_FALSE(spec.kill_on_disconnect);
  EXPECT_FALSE(spec.stream);
  EXPECT_EQ(spec.drain, absl::ZeroDuration());
}

TEST(ExecSpec, Refusals) {
  EXPECT_EQ(Blamed("{}"), "argv");
  EXPECT_EQ(Blamed(R"({"argv":[]})"), "argv");
  EXPECT_EQ(Blamed(R"({"argv":[""]})"), "argv");
  EXPECT_EQ(Blamed(R"({"argv":["x"],"shell":"x"})"), "argv");
  EXPECT_EQ(Blamed(R"({"shell":"x","cwd":"a"})"), "cwd");
  EXPECT_EQ(Blamed(R"({"shell":"x","cwd":""})"), "cwd");
  EXPECT_EQ(Blamed(R"({"shell":"x","env":{"A=B":"1"}})"), "env");
  EXPECT_EQ(Blamed(R"({"shell":"x","gid":1})"), "gid");
  EXPECT_EQ(Blamed(R"({"shell":"x","uid":4294967295})"), "uid");
  EXPECT_EQ(Blamed(R"({"shell":"x","user":"root","uid":0})"), "user");
  EXPECT_EQ(Blamed(R"({"shell":"x","stdin":"tty"})"), "stdin");
  EXPECT_EQ(Blamed(R"({"shell":"x","stdin":"null","stdin_b64":"AA=="})"), "stdin_b64");
  EXPECT_EQ(Blamed(R"({"shell":"x","stdin_b64":"???"})"), "stdin_b64");
  EXPECT_EQ(
      Blamed(R"({"shell":"x","stdin_b64":")" + std::string((8 << 20) / 3 * 4 + 8, 'A') + "\"}"),
      "stdin_b64");
  EXPECT_EQ(Blamed(R"({"shell":"x","timeout_ms":0})"), "timeout_ms");
  EXPECT_EQ(Blamed(R"({"shell":"x","on_disconnect":"x"})"), "on_disconnect");
  EXPECT_EQ(Blamed(R"({"shell":"x","stream":false})"), "stream");
  EXPECT_EQ(Blamed(R"({"shell":"x","retain_bytes":1})"), "retain_bytes");
  EXPECT_EQ(Blamed(R"({"shell":"x","heartbeat_ms":99})"), "heartbeat_ms");
  EXPECT_EQ(Blamed(R"({"shell":"x","exec_id":"0123456789abcdef0123456789abcdef"})"), "");
  for (const char* id : {"", "1", "0123456789ABCDEF0123456789abcdef",
                         "../56789abcdef0123456789abcdef01", "0123456789abcdef0123456789abcdef0"}) {
    EXPECT_EQ(Blamed(R"({"shell":"x","exec_id":")" + std::string(id) + "\"}"), "exec_id") << id;
  }
  EXPECT_EQ(Blamed(R"({"shell":"x","tty":true})"), "tty");
}

TEST(ResolveExecSpec, EnvironmentAndUser) {
  setenv("FROM_DAEMON", "1", 1);
  unsetenv("USER");
  SpawnSpec out;
  ASSERT_FALSE(ResolveExecSpec({.shell = "x", .env = {{"A", "b"}}, .user = "root"}, &out));
  EXPECT_THAT(out.env, Contains("FROM_DAEMON=1"));
  EXPECT_THAT(out.env, Contains("A=b"));
  EXPECT_THAT(out.env, Contains("USER=root"));
  EXPECT_THAT(out.env, Contains("LOGNAME=root"));
  ASSERT_TRUE(out.identity.has_value());
  EXPECT_EQ(out.identity->uid, 0u);

  SpawnSpec clear;
  ASSERT_FALSE(ResolveExecSpec(
      {.shell = "x", .env = {{"HOME", "/h"}}, .clear_env = true, .user = "root"}, &clear));
  EXPECT_THAT(clear.env, ElementsAre("HOME=/h", "LOGNAME=root", "USER=root"));

  SpawnSpec numbers;
  ASSERT_FALSE(ResolveExecSpec({.shell = "x", .uid = 54321}, &numbers));
  EXPECT_EQ(numbers.identity->gid, 54321u);
  EXPECT_THAT(numbers.env, Not(Contains("USER=root")));
  unsetenv("FROM_DAEMON");
}

TEST(ResolveExecSpec, WhatCannotBeFound) {
  SpawnSpec out;
  const auto user = ResolveExecSpec({.shell = "x", .user = "no-such-account"}, &out);
  ASSERT_TRUE(user.has_value());
  EXPECT_THAT(user->Json(), HasSubstr("\"kind\":\"BAD_USER\""));
  const auto program = ResolveExecSpec({.argv = {"sh"}, .env = {{"PATH", "/nowhere"}}}, &out);
  ASSERT_TRUE(program.has_value());
  EXPECT_EQ(program->status, 422);
  EXPECT_EQ(program->code, "SPAWN_FAILED");
  EXPECT_THAT(program->Json(), HasSubstr("\"kind\":\"NOT_FOUND\""));
}

TEST(SpawnFailed, Kinds) {
  using Step = Processes::SpawnResult::Step;
  SpawnSpec spec;
  for (const auto& [step, error, kind] : std::initializer_list<std::tuple<Step, int, const char*>>{
           {Step::kExec, ENOENT, "NOT_FOUND"},
           {Step::kExec, EACCES, "NOT_EXECUTABLE"},
           {Step::kExec, ENOEXEC, "NOT_EXECUTABLE"},
           {Step::kExec, E2BIG, "ARGUMENTS_TOO_LONG"},
           {Step::kExec, EIO, "OTHER"},
           {Step::kDirectory, ENOENT, "BAD_CWD"},
           {Step::kIdentity, EPERM, "BAD_USER"},
           {Step::kFork, EPERM, "OTHER"}}) {
    EXPECT_THAT(SpawnFailed(spec, {nullptr, error, step}).Json(),
                HasSubstr("\"kind\":\"" + std::string(kind) + "\""));
  }
  EXPECT_EQ(SpawnFailed(spec, {nullptr, EAGAIN, Step::kFork}).code, "TOO_MANY");
}

}  // namespace
}  // namespace bridge::local::execd::extra
