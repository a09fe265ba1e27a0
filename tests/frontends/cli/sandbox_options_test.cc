// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/sandbox_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::CreateSandboxRequest;
using ::testing::HasSubstr;
using ::testing::Not;

std::map<std::string, std::string> g_environment;  // NOLINT: a test's own world

std::optional<std::string> Lookup(const std::string& name) {
  const auto found = g_environment.find(name);
  if (found == g_environment.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<CreateSandboxRequest> Read(const std::vector<std::string>& args) {
  const auto arguments = ParseArguments({.options = SandboxOptions(true)}, args);
  if (!arguments.ok()) return arguments.status();
  return ReadSandboxOptions(*arguments, true, Lookup);
}

class SandboxOptionsTest : public ::testing::Test {
 protected:
  void SetUp() override { g_environment = {}; }
};

TEST_F(SandboxOptionsTest, EverythingUnsaidIsLeftToTheBridge) {
  const auto request = Read({});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->DebugString(), "spec {\n  image: \"python:3.12-slim\"\n}\n");
}

TEST_F(SandboxOptionsTest, TheImageComesFromTheOptionThenTheEnvironment) {
  g_environment["SANDBOX_BRIDGE_IMAGE"] = "mine:1";
  EXPECT_EQ(Read({})->spec().image(), "mine:1");
  EXPECT_EQ(Read({"--image=other:2"})->spec().image(), "other:2");
  g_environment["SANDBOX_BRIDGE_IMAGE"] = "";
  EXPECT_EQ(Read({})->spec().image(), "python:3.12-slim");
}

TEST_F(SandboxOptionsTest, ASnapshotReplacesTheImage) {
  EXPECT_EQ(Read({"--snapshot", "sn-1"})->spec().snapshot_id(), "sn-1");
  EXPECT_FALSE(Read({"--snapshot", "sn-1", "--image", "x"}).ok());
}

TEST_F(SandboxOptionsTest, Lifetimes) {
  EXPECT_EQ(Read({"--ttl", "1h30m"})->spec().ttl().seconds(), 5400);
  EXPECT_TRUE(Read({"--ttl", "never"})->spec().never());
  EXPECT_FALSE(Read({"--ttl", "soon"}).ok());
  const auto ready = Read({"--ready-timeout=2.5s"});
  EXPECT_EQ(ready->ready_timeout().seconds(), 2);
  EXPECT_EQ(ready->ready_timeout().nanos(), 500'000'000);
}

TEST_F(SandboxOptionsTest, LabelsLimitsAndTheRest) {
  const auto request = Read({"-l", "a=1", "--label", "b=x=y", "--cpu", "500m", "--memory=1Gi",
                             "--platform", "linux/arm64", "--request-id", "r1"});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->spec().metadata().at("a"), "1");
  EXPECT_EQ(request->spec().metadata().at("b"), "x=y");
  EXPECT_EQ(request->spec().resource_limits().at("cpu"), "500m");
  EXPECT_EQ(request->spec().resource_limits().at("memory"), "1Gi");
  EXPECT_EQ(request->spec().platform(), "linux/arm64");
  EXPECT_EQ(request->request_id(), "r1");
  EXPECT_FALSE(Read({"-l", "novalue"}).ok());
  EXPECT_FALSE(Read({"-l", "=x"}).ok());
}

TEST_F(SandboxOptionsTest, EnvironmentIsGivenOrTakenFromHere) {
  g_environment["HERE"] = "own value";
  const auto request = Read({"-e", "A=hello world", "-e", "B=", "-e", "HERE"});
  ASSERT_TRUE(request.ok());
  ASSERT_EQ(request->spec().env_size(), 3);
  EXPECT_EQ(request->spec().env(0).value(), "hello world");
  EXPECT_EQ(request->spec().env(1).value(), "");
  EXPECT_EQ(request->spec().env(2).value(), "own value");
}

TEST_F(SandboxOptionsTest, AMistakeInTheEnvironmentNeverRepeatsAValue) {
  const auto missing = Read({"-e", "NOT_SET"});
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("NOT_SET"));
  const auto nameless = Read({"-e", "=secret"});
  EXPECT_THAT(std::string(nameless.status().message()), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace bridge::cli
