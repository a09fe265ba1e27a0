// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using K = Option::Kind;

CommandLine Line() {
  return {.options = {{"--image", 0, K::kValue, "REF", "An image."},
                      {"--env", 'e', K::kList, "NAME=VALUE", "A variable."},
                      {"--keep", 'k', K::kFlag, "", "Leave it."}},
          .min_words = 1,
          .max_words = 1,
          .free_form = true};
}

Arguments Parse(const std::vector<std::string>& args) {
  absl::StatusOr<Arguments> parsed = ParseArguments(Line(), args);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : Arguments();
}

std::string ErrorOf(const std::vector<std::string>& args, CommandLine line = Line()) {
  return std::string(ParseArguments(line, args).status().message());
}

TEST(Options, ValuesAreWrittenInFourWays) {
  for (const auto& args : std::vector<std::vector<std::string>>{
           {"ID", "--env", "A=1"}, {"ID", "--env=A=1"}, {"ID", "-e", "A=1"}, {"ID", "-eA=1"}}) {
    EXPECT_THAT(Parse(args).List("--env"), ElementsAre("A=1"));
  }
}

TEST(Options, AListKeepsAllAndAValueTheLast) {
  const Arguments parsed =
      Parse({"-e", "A=1", "--image", "x", "ID", "-e", "B=2", "--image=y", "--keep"});
  EXPECT_THAT(parsed.List("--env"), ElementsAre("A=1", "B=2"));
  EXPECT_EQ(parsed.Value("--image"), "y");
  EXPECT_TRUE(parsed.Has("--keep"));
  EXPECT_EQ(Parse({"ID"}).Value("--image", "otherwise"), "otherwise");
}

TEST(Options, AnEmptyValueIsAValue) {
  EXPECT_EQ(Parse({"ID", "--image="}).Value("--image", "otherwise"), "");
  EXPECT_EQ(Parse({"ID", "--image", ""}).Value("--image", "otherwise"), "");
}

TEST(Options, TheUsersCommandIsLeftAlone) {
  EXPECT_THAT(Parse({"ID", "--", "ls", "--keep", "--"}).rest(), ElementsAre("ls", "--keep", "--"));
  EXPECT_THAT(Parse({"ID", "ls", "-l", "--keep"}).rest(), ElementsAre("ls", "-l", "--keep"));
  EXPECT_FALSE(Parse({"ID", "ls", "-l", "--keep"}).Has("--keep"));
  EXPECT_THAT(Parse({"ID", "--keep", "ls"}).rest(), ElementsAre("ls"));
  EXPECT_THAT(Parse({"ID", "--", "", "a b"}).rest(), ElementsAre("", "a b"));
  EXPECT_THAT(Parse({"ID"}).rest(), IsEmpty());
}

TEST(Options, ALoneDashIsAWord) { EXPECT_THAT(Parse({"-"}).words(), ElementsAre("-")); }

TEST(Options, AfterTwoDashesEverythingIsAWord) {
  const CommandLine line{.options = Line().options, .min_words = 1, .max_words = 3};
  const auto parsed = ParseArguments(line, {"a", "--", "--keep", "b"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(parsed->words(), ElementsAre("a", "--keep", "b"));
}

TEST(Options, MistakesAreNamed) {
  EXPECT_EQ(ErrorOf({"ID", "--nope=1"}), "unknown option --nope");
  EXPECT_EQ(ErrorOf({"ID", "-z"}), "unknown option -z");
  EXPECT_EQ(ErrorOf({"ID", "--image"}), "--image wants a value (REF)");
  EXPECT_EQ(ErrorOf({"ID", "--keep=yes"}), "--keep takes no value");
  EXPECT_EQ(ErrorOf({"ID", "-kx"}), "--keep takes no value");
  EXPECT_EQ(ErrorOf({"ID", "-kkx"}), "--keep takes no value");
  EXPECT_EQ(ErrorOf({}), "too few words");
  EXPECT_EQ(ErrorOf({"a", "b"}, {.max_words = 1}), "unexpected word \"b\"");
}

TEST(Options, HelpIsAlignedAndWrapped) {
  const std::string help = ExplainOptions(
      {{"--keep", 'k', K::kFlag, "", "Leave it."},
       {"--a-rather-long-name", 0, K::kValue, "VALUE",
        "A sentence that goes on for so long that it does not fit in what is left of a line."}});
  EXPECT_EQ(help,
            "  -k, --keep              Leave it.\n"
            "      --a-rather-long-name VALUE\n"
            "                          A sentence that goes on for so long that it does not\n"
            "                          fit in what is left of a line.\n");
}

}  // namespace
}  // namespace bridge::cli
