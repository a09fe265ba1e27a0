// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/exec_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::ExecSpec;
using ::testing::ElementsAre;

absl::StatusOr<Arguments> Parse(const std::vector<std::string>& args) {
  return ParseArguments({.options = ExecOptions(), .free_form = true}, args);
}

absl::StatusOr<ExecSpec> Read(const std::vector<std::string>& args) {
  const auto arguments = Parse(args);
  if (!arguments.ok()) return arguments.status();
  return ReadExecOptions(*arguments, [](const std::string&) { return std::nullopt; });
}

TEST(ExecOptions, ArgumentsTravelAsTheyAre) {
  const auto spec = Read({"--", "printf", "[%s]", "", "a b", "*", "$(id)", "-n", "l1\nl2", "\\"});
  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(spec->argv().args(),
              ElementsAre("printf", "[%s]", "", "a b", "*", "$(id)", "-n", "l1\nl2", "\\"));
}

TEST(ExecOptions, AShellLineInstead) {
  EXPECT_EQ(Read({"-c", "echo $HOME | wc"})->shell(), "echo $HOME | wc");
  EXPECT_FALSE(Read({"-c", "x", "--", "y"}).ok());
  EXPECT_EQ(Read({}).status().message(), "no command given");
  EXPECT_EQ(Read({"--"}).status().message(), "no command given");
}

TEST(ExecOptions, NothingUnsaidIsSet) {
  EXPECT_EQ(Read({"ls"})->DebugString(), "argv {\n  args: \"ls\"\n}\n");
}

TEST(ExecOptions, TheRest) {
  const auto spec = Read({"-w", "/tmp", "-e", "A=b=c", "-t", "1.5s", "--fidelity", "lines",
                          "--max-output", "0", "-u", "agent", "ls"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->cwd(), "/tmp");
  EXPECT_EQ(spec->env(0).name(), "A");
  EXPECT_EQ(spec->env(0).value(), "b=c");
  EXPECT_EQ(spec->timeout().seconds(), 1);
  EXPECT_EQ(spec->timeout().nanos(), 500'000'000);
  EXPECT_EQ(spec->fidelity(), sandbox::bridge::v1::FIDELITY_LINES);
  EXPECT_TRUE(spec->has_max_output_bytes());
  EXPECT_EQ(spec->max_output_bytes(), 0);
  EXPECT_EQ(spec->user().name(), "agent");
}

TEST(ExecOptions, MistakesAreRefused) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"-t", "0", "ls"},
                                             {"-t", "-1s", "ls"},
                                             {"--fidelity", "exact", "ls"},
                                             {"--max-output", "1k", "ls"},
                                             {"--max-output", "-1", "ls"},
                                             {"-u", "", "ls"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Read(args).status())) << args[0] << ' ' << args[1];
  }
}

TEST(ExecOptions, Users) {
  EXPECT_EQ(ParseUser("0")->ids().uid(), 0u);
  EXPECT_FALSE(ParseUser("0")->ids().has_gid());
  EXPECT_EQ(ParseUser("1000:0")->ids().gid(), 0u);
  EXPECT_TRUE(ParseUser("1000:0")->ids().has_gid());
  EXPECT_EQ(ParseUser("1st")->name(), "1st");
  for (const char* text : {"", ":1", "1:", "1:a", "name:1", "4294967296", "1:4294967296"}) {
    EXPECT_FALSE(ParseUser(text).ok()) << text;
  }
}

TEST(ExecOptions, InputModes) {
  EXPECT_EQ(*ReadInputMode(*Parse({"ls"})), InputMode::kAuto);
  EXPECT_EQ(*ReadInputMode(*Parse({"-i", "ls"})), InputMode::kWait);
  EXPECT_EQ(*ReadInputMode(*Parse({"-n", "ls"})), InputMode::kNone);
  EXPECT_FALSE(ReadInputMode(*Parse({"-n", "-i", "ls"})).ok());
}

}  // namespace
}  // namespace bridge::cli
