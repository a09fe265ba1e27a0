// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace bridge::local::execd {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(EnvFile, TakesPlainLinesOnly) {
  EXPECT_THAT(ParseEnvFile("A=1\n"
                           "# B=2\n"
                           "\n"
                           "export C=3\n"
                           "  D = spaced \r\n"
                           "E=\"quoted text\"\n"
                           "F='x\"y'\n"
                           "G=a=b\n"
                           "1H=no\n"
                           "nonsense\n"
                           "I="),
              ElementsAre(Pair("A", "1"), Pair("D", "spaced"), Pair("E", "quoted text"),
                          Pair("F", "x\"y"), Pair("G", "a=b"), Pair("I", "")));
}

TEST(Environment, TheFileIsReadAnewAndWins) {
  const std::string path = testing::TempDir() + "/envs";
  setenv("EXECD_ENVS", path.c_str(), 1);
  setenv("FROM_FILE", "own", 1);
  unlink(path.c_str());
  EXPECT_EQ(BaseEnvironment().at("FROM_FILE"), "own");
  std::ofstream(path) << "FROM_FILE=file\n";
  EXPECT_EQ(BaseEnvironment().at("FROM_FILE"), "file");
  EXPECT_EQ(OwnEnvironment().at("FROM_FILE"), "own");
  std::ofstream(path) << "OTHER=x\n";
  EXPECT_EQ(BaseEnvironment().at("FROM_FILE"), "own");
  unsetenv("EXECD_ENVS");
}

TEST(Environment, List) {
  EXPECT_THAT(EnvList({{"B", ""}, {"A", "x=y"}}), ElementsAre("A=x=y", "B="));
}

TEST(LookPath, FindsTheFirstExecutableFile) {
  const std::string dir = testing::TempDir();
  for (const char* name : {"p1", "p2"}) mkdir((dir + "/" + name).c_str(), 0755);
  std::ofstream(dir + "/p1/tool") << "x";
  std::ofstream(dir + "/p2/tool") << "x";
  chmod((dir + "/p1/tool").c_str(), 0644);
  chmod((dir + "/p2/tool").c_str(), 0755);
  mkdir((dir + "/p1/folder").c_str(), 0755);
  const std::string path = dir + "/p1:" + dir + "/p2";
  EXPECT_EQ(LookPath("tool", path), dir + "/p2/tool");
  EXPECT_EQ(LookPath("folder", path), std::nullopt);
  EXPECT_EQ(LookPath("none", path), std::nullopt);
  EXPECT_EQ(LookPath("", path), std::nullopt);
  EXPECT_EQ(LookPath("a/none", path), "a/none");
}

TEST(FindShell, ThereIsOne) {
  const Shell shell = FindShell();
  EXPECT_EQ(access(shell.path.c_str(), X_OK), 0) << shell.path;
  EXPECT_TRUE(shell.name == "bash" || shell.name == "sh");
}

}  // namespace
}  // namespace bridge::local::execd
