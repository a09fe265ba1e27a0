// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cli/command.h"
#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Nothing listens there; help and usage need no bridge.
constexpr const char* kNowhere = "127.0.0.1:1";

TEST(App, TheHelpNamesEveryCommandAndVariable) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"help"}}) {
    const Ran ran = Sbx(kNowhere).Run(args);
    EXPECT_EQ(ran.exit_code, 0);
    for (const Command& command : Commands()) {
      EXPECT_THAT(ran.out, HasSubstr("\n  " + std::string(command.name) + " "));
    }
    EXPECT_THAT(ran.out, HasSubstr("SANDBOX_BRIDGE_TOKEN_FILE"));
    EXPECT_EQ(ran.err, "");
  }
}

TEST(App, EveryCommandExplainsItselfInThreeWays) {
  for (const Command& command : Commands()) {
    const std::string name(command.name);
    const Ran ran = Sbx(kNowhere).Run({name, "--help"});
    EXPECT_EQ(ran.exit_code, 0) << name;
    EXPECT_THAT(ran.out, StartsWith("Usage: sbx " + name + " " + std::string(command.synopsis)));
    for (const Option& option : command.line.options) {
      EXPECT_THAT(ran.out, HasSubstr(option.name)) << name;
    }
    EXPECT_EQ(Sbx(kNowhere).Run({"help", name}).out, ran.out);
    EXPECT_EQ(Sbx(kNowhere).Run({name, "--nonsense", "-h", "--help"}).out, ran.out);
  }
}

TEST(App, HelpFitsATerminal) {
  for (const Command& command : Commands()) {
    const std::string text = Sbx(kNowhere).Run({"help", std::string(command.name)}).out;
    size_t from = 0;
    for (size_t to = text.find('\n'); to != std::string::npos; to = text.find('\n', from)) {
      // Bytes, a little more than columns.
      EXPECT_LE(to - from, 94u) << text.substr(from, to - from);
      from = to + 1;
    }
  }
}

TEST(App, TablesOfOptionsAreSound) {
  for (const Command& command : Commands()) {
    std::set<std::string> names = {"--bridge", "--json", "--help"};
    std::set<char> letters = {'h'};
    for (const Option& option : command.line.options) {
      EXPECT_TRUE(names.insert(option.name).second) << command.name << ' ' << option.name;
      EXPECT_THAT(option.name, StartsWith("--"));
      if (option.letter != 0) {
        EXPECT_TRUE(letters.insert(option.letter).second) << option.letter;
      }
      EXPECT_EQ(option.help.back(), '.') << option.name;
      EXPECT_EQ(option.value_name.empty(), option.kind == Option::Kind::kFlag) << option.name;
    }
    EXPECT_NE(command.summary.back(), '.') << command.name;
    EXPECT_TRUE(command.description.empty() || command.description.back() == '\n');
    EXPECT_LE(command.line.min_words, command.line.max_words);
    EXPECT_NE(command.run, nullptr);
  }
}

TEST(App, Version) {
  const Ran ran = Sbx(kNowhere).Run({"--version"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, ::testing::MatchesRegex("sbx [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(App, MistakesAreTwoLinesOnStderr) {
  const Ran none = Sbx(kNowhere).Run({});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, "sbx: USAGE: no command given\n     See `sbx --help`.\n");
  const Ran unknown = Sbx(kNowhere).Run({"frobnicate"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no command frobnicate"));
  const Ran early = Sbx(kNowhere).Run({"--json", "ls"});
  EXPECT_EQ(early.exit_code, 2);
  EXPECT_THAT(early.err, HasSubstr("--json belongs after a command"));
}

TEST(App, CommandsThatPassAnExitCodeAnswerTheirOwnMistakesWith125) {
  EXPECT_EQ(Sbx(kNowhere).Run({"exec"}).exit_code, 125);
  EXPECT_EQ(Sbx(kNowhere).Run({"exec", "sb-1"}).exit_code, 125);
  EXPECT_EQ(Sbx(kNowhere).Run({"run", "--nope", "--", "x"}).exit_code, 125);
  EXPECT_EQ(Sbx(kNowhere).Run({"info"}).exit_code, 2);
}

TEST(App, MistakesAreJsonWhereJsonWasAskedFor) {
  const Ran ran = Sbx(kNowhere).Run({"ls", "--nope", "--json"});
  EXPECT_EQ(Json::parse(ran.err)["error"]["reason"], "USAGE");
  // That --json belongs to the user's own command.
  EXPECT_THAT(Sbx(kNowhere).Run({"exec", "--nope", "sb-1", "--", "--json"}).err,
              StartsWith("sbx: USAGE"));
}

TEST(App, ABadSettingIsNamed) {
  Sbx sbx("no address");
  const Ran ran = sbx.Run({"ls"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, StartsWith("sbx: BAD_SETTING: \"no address\" is no address"));
  sbx.environment()["SANDBOX_BRIDGE_ADDRESS"] = kNowhere;
  sbx.environment()["SANDBOX_BRIDGE_TOKEN_FILE"] = "/no/such/file";
  EXPECT_THAT(sbx.Run({"ls"}).err, HasSubstr("SANDBOX_BRIDGE_TOKEN_FILE: cannot read"));
}

TEST(App, ABridgeThatIsNotThere) {
  const Ran ran = Sbx(kNowhere).Run({"ls"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, StartsWith("sbx: BRIDGE_UNREACHABLE: no answer from a bridge at " +
                                  std::string(kNowhere) + ": "));
  EXPECT_EQ(Sbx(kNowhere).Run({"exec", "sb-1", "--", "x"}).exit_code, 125);
}

TEST(App, TheOptionForTheBridgeWins) {
  FakeBridge fake;
  fake.on_list = [](const auto&, auto*) { return grpc::Status::OK; };
  EXPECT_EQ(Sbx(kNowhere).Run({"ls", "--bridge", fake.address()}).exit_code, 0);
  EXPECT_EQ(Sbx(kNowhere).Run({"ls", "--bridge=http://" + fake.address()}).exit_code, 0);
}

// What a script makes of a variable that is not set: not the way to another bridge.
TEST(App, AnEmptyOptionForTheBridgeIsAMistake) {
  FakeBridge fake;
  fake.on_list = [](const auto&, auto*) { return grpc::Status::OK; };
  const Ran ran = Sbx(fake.address()).Run({"ls", "--bridge", ""});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, StartsWith("sbx: USAGE: --bridge is empty"));
}

}  // namespace
}  // namespace bridge::cli
