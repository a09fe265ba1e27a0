// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/session_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace bridge::local::execd {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// The form in which bash writes exported variables, both ways of quoting included.
TEST(SessionDump, ReadsWhatBashWrites) {
  const auto state = ParseSessionDump(
      "declare -x A=\"two words\"\n"
      "declare -x B=\"a\\\"b\\\\c\\$d\\`e\"\n"
      "declare -x EMPTY=\"\"\n"
      "declare -x LINES2=\"one\ndeclare -x TRICK=\\\"no\\\"\n\"\n"
      "declare -x UNSET\n"
      "declare -rx RO=\"r\"\n"
      "declare -x ANSI=$'a\\tb\\001\\E[m\\'\\\\'\n"
      "\n"
      "__PWD__:/tmp/a\nb\n");
  ASSERT_TRUE(state.has_value());
  EXPECT_THAT(state->env,
              ElementsAre(Pair("A", "two words"), Pair("ANSI", "a\tb\x01\033[m'\\"),
                          Pair("B", "a\"b\\c$d`e"), Pair("EMPTY", ""),
                          Pair("LINES2", "one\ndeclare -x TRICK=\"no\"\n"), Pair("RO", "r")));
  EXPECT_EQ(state->cwd, "/tmp/a\nb");
}

TEST(SessionDump, IncompleteOnesCountForNothing) {
  const std::string whole = "declare -x A=\"1\"\ndeclare -x B=$'x'\n\n__PWD__:/tmp\n";
  ASSERT_TRUE(ParseSessionDump(whole).has_value());
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(ParseSessionDump(whole.substr(0, n)).has_value()) << n;
  }
  EXPECT_FALSE(ParseSessionDump("nonsense\n__PWD__:/tmp\n").has_value());
}

TEST(SessionDump, LeavesOutWhatIsNotKept) {
  const std::string big(8193, 'x');
  const std::string most(8192, 'x');
  const auto state = ParseSessionDump("declare -x BIG=\"" + big + "\"\ndeclare -x MOST=\"" + most +
                                      "\"\ndeclare -x PS1=\"$ \"\ndeclare -x SHLVL=\"2\"\n"
                                      "declare -x PROMPT_COMMAND=\"x\"\ndeclare -x _=\"y\"\n"
                                      "declare -x __execd_code=\"0\"\n__PWD__:/\n");
  ASSERT_TRUE(state.has_value());
  EXPECT_THAT(state->env, ElementsAre(Pair("MOST", most)));
}

TEST(SessionScript, TheCommandBeginsOnLine11) {
  const std::string script = SessionScript("echo hi", "/tmp/dump");
  const auto lines = std::count(script.begin(), script.begin() + script.find("echo hi"), '\n');
  EXPECT_EQ(lines, 10);
}

// Through a real bash: what it exports comes out as it went in.
TEST(SessionScript, BashRoundTrip) {
  const std::string dir = testing::TempDir();
  const std::string dump = dir + "/it's a dump";
  std::ofstream(dir + "/script") << SessionScript(
      "export A='q\"u`o$t\\e' B=$'tab\\there\\nline\\x01\\xff' C=; local_v=1; cd /usr; (exit 3)",
      dump);
  const std::string command =
      "env -i PATH=/usr/bin:/bin bash --noprofile --norc " + dir + "/script";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 3);
  std::ifstream in(dump, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const auto state = ParseSessionDump(text.str());
  ASSERT_TRUE(state.has_value()) << text.str();
  EXPECT_EQ(state->env.at("A"), "q\"u`o$t\\e");
  EXPECT_EQ(state->env.at("B"), "tab\there\nline\x01\xff");
  EXPECT_EQ(state->env.at("C"), "");
  EXPECT_EQ(state->env.count("local_v"), 0u);
  EXPECT_EQ(state->cwd, "/usr");
}

TEST(SessionScript, AfterExitThereIsNoDump) {
  const std::string dir = testing::TempDir();
  std::remove((dir + "/none").c_str());
  std::ofstream(dir + "/script2") << SessionScript("export A=1; exit 0", dir + "/none");
  EXPECT_EQ(std::system(("bash --noprofile --norc " + dir + "/script2").c_str()), 0);
  EXPECT_FALSE(std::ifstream(dir + "/none").good());
}

TEST(SessionMarker, AsInTheRealDaemon) {
  EXPECT_TRUE(IsSessionMarker("__EXIT_CODE__:7"));
  EXPECT_TRUE(IsSessionMarker("__PWD__:/x"));
  EXPECT_TRUE(IsSessionMarker("__ENV_DUMP_START__"));
  EXPECT_TRUE(IsSessionMarker("__ENV_DUMP_END__"));
  EXPECT_FALSE(IsSessionMarker("x__PWD__:"));
  EXPECT_FALSE(IsSessionMarker("__ENV_DUMP_START__ x"));
}

}  // namespace
}  // namespace bridge::local::execd
