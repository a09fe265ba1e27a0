// SPDX-License-Identifier: Apache-2.0
//
// What is particular to one way of running commands: our daemon's, the lossy one; and daemons on
// which nothing may run.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/exec_client.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using R = ErrorReason;
namespace fs = std::filesystem;

TEST(OwnExec, NeedsNeitherAShellNorAPlaceForFiles) {
  // As in an image of one static program: the stock route cannot run anything there.
  ExecdProcess execd{{}};
  ExecBench bench{execd.url()};
  fs::remove_all(execd.tmpdir());
  const ExecResult result = bench.Run({.argv = {"echo", "hi"}});
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.out, "hi\n");
  EXPECT_EQ(result.outcome, Outcome(ExitCode{0}));
}

TEST(ProbedDaemon, OfAnotherSandboxRunsNothing) {
  setenv("OPENSANDBOX_ID", "another", 1);
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--compat=1.1.0", "--extras=false"}}) {
    ExecdProcess execd{flags};
    ExecBench bench{execd.url()};  // for a sandbox called "box"
    const std::string mark = execd.tmpdir() + "/mark";
    const ExecResult result = bench.Run({.argv = {"touch", mark}});
    EXPECT_EQ(ReasonOf(result.status), R::ERROR_REASON_SANDBOX_UNREACHABLE);
    EXPECT_THAT(std::string(result.status.message()), HasSubstr("another sandbox's daemon"));
    EXPECT_FALSE(fs::exists(mark));
  }
  setenv("OPENSANDBOX_ID", "box", 1);
  ExecdProcess execd{{}};
  ExecBench bench{execd.url()};
  EXPECT_EQ(bench.Run({.argv = {"true"}}).outcome, Outcome(ExitCode{0}));
  unsetenv("OPENSANDBOX_ID");
}

class LineExec110 : public ::testing::Test {
 protected:
  ExecdProcess execd{{"--compat=1.1.0", "--extras=false"}};
  ExecBench bench{execd.url()};
};

TEST_F(LineExec110, SaysThatItIsLossyAndKeepsLines) {
  const ExecResult result = bench.Run(
      {.shell = "printf 'a\\r\\n\\nb'; echo e >&2; exit 4", .fidelity = ExecFidelity::kLines});
  EXPECT_EQ(result.fidelity, ExecFidelity::kLines);
  EXPECT_EQ(result.out, "a\n\nb\n");
  EXPECT_EQ(result.err, "e\n");
  EXPECT_EQ(result.outcome, Outcome(ExitCode{4}));
  EXPECT_TRUE(result.last.lossy);
}

TEST_F(LineExec110, DroppedCommandIsInterrupted) {
  const std::string nap = "6001." + std::to_string(getpid());
  bench.StartAndDrop({.shell = "echo up; sleep " + nap, .fidelity = ExecFidelity::kLines}, "up");
  bench.Settle();
  EXPECT_THAT(SurvivorsWith(nap), IsEmpty());
}

TEST_F(LineExec110, WhatIsNotKeptIsUnsupported) {
  const ExecResult result = bench.Run({.argv = {"true"}, .fidelity = ExecFidelity::kLines});
  EXPECT_EQ(ReasonOf(bench.Attach(result.id).status), R::ERROR_REASON_UNSUPPORTED_FEATURE);
  const auto info = bench.Get(result.id);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->outcome, Outcome(ExitCode{0}));
}

}  // namespace
}  // namespace bridge
