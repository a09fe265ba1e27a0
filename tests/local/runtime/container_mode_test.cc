// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap program as a real OpenSandbox server starts it in a container.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Ran {
  int code = 0;
  std::string output;
};

// Runs the bootstrap with `arguments` (shell text) under `env`.
Ran RunBootstrap(const std::string& env, const std::string& arguments) {
  const std::string envs = "EXECD_ENVS=" + std::string(getenv("TEST_TMPDIR")) + "/dotenv ";
  const std::string command =
      "env " + envs + env + " bridge/local/runtime/bootstrap " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Ran ran;
  std::array<char, 4096> bytes;
  while (const size_t n = fread(bytes.data(), 1, bytes.size(), pipe)) {
    ran.output.append(bytes.data(), n);
  }
  ran.code = WEXITSTATUS(pclose(pipe));
  return ran;
}

TEST(ContainerMode, EndsWithTheEntrypointsCodeThoughExecdRuns) {
  const std::string folder = getenv("TEST_TMPDIR");
  const std::string execd = folder + "/execd", up = folder + "/up";
  std::ofstream(execd) << "#!/bin/sh\nenv\n: >" << up << "\n";
  fs::permissions(execd, fs::perms::owner_all);
  const Ran ran = RunBootstrap(
      "EXECD=" + execd, "sh -c 'until [ -e " + up + " ]; do sleep 0.01; done; echo hi; exit 5'");
  EXPECT_EQ(ran.code, 5);
  EXPECT_THAT(ran.output, HasSubstr("starting OpenSandbox Execd daemon at " + execd + ".\n"));
  EXPECT_THAT(ran.output, HasSubstr("hi\n"));
  EXPECT_THAT(ran.output, HasSubstr("EXECD_ENVS=")) << "execd sees the variable";
  EXPECT_TRUE(fs::exists(std::string(getenv("TEST_TMPDIR")) + "/dotenv"));
}

TEST(ContainerMode, ShellTextAndItsOverride) {
  EXPECT_EQ(RunBootstrap("EXECD=/bin/true", "-c 'exit $((2 + 4))'").code, 6);
  EXPECT_EQ(RunBootstrap("EXECD=/bin/true BOOTSTRAP_CMD='exit 7'", "sleep 1000").code, 7);
}

TEST(ContainerMode, PassesTermOn) {
  const Ran ran = RunBootstrap("EXECD=/bin/true",
                               "sh -c 'trap \"echo got; exit 9\" TERM; kill -TERM $PPID; "
                               "while true; do sleep 0.01; done'");
  EXPECT_EQ(ran.code, 9);
  EXPECT_THAT(ran.output, HasSubstr("got\n"));
}

TEST(ContainerMode, MissingProgramIs127) {
  EXPECT_EQ(RunBootstrap("EXECD=/bin/true", "nosuchbin").code, 127);
}

}  // namespace
