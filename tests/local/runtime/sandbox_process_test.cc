// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/sandbox_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"

namespace bridge::local::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string Slurp(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Polls with a deadline: what is waited for happens in other processes.
template <class Condition>
bool Eventually(Condition condition, absl::Duration timeout = absl::Seconds(10)) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    usleep(1000);
  }
  return true;
}

bool CanUse(Isolation isolation) { return isolation != Isolation::kOverlay || geteuid() == 0; }

class SandboxProcessTest : public ::testing::TestWithParam<Isolation> {
 protected:
  void SetUp() override {
    if (!CanUse(GetParam())) GTEST_SKIP() << "needs root";
    char name[] = "/tmp/sandbox-process-test.XXXXXX";
    dir_ = mkdtemp(name);
  }
  void TearDown() override {
    if (!dir_.empty()) fs::remove_all(dir_);
    close(null_);
  }

  LaunchRequest Request(std::vector<std::string> entrypoint) {
    LaunchRequest request;
    request.id = "test-" + fs::path(dir_).extension().string().substr(1);
    request.dir = dir_;
    request.root.isolation = GetParam();
    request.root.bootstrap = fs::absolute("bridge/local/runtime/bootstrap");
    request.root.execd = "/usr/bin/sleep";
    request.root.hostname = "box";
    request.root.disk_bytes = 64 << 20;
    request.spec.env = {"PATH=/usr/bin:/bin", "HOME=/root", "GREETING=h i",
                        "OPENSANDBOX_ID=" + request.id};
    request.spec.execd = {GetParam() == Isolation::kNone ? "/usr/bin/sleep" : kSandboxExecd,
                          "1000"};
    request.spec.entrypoint = std::move(entrypoint);
    request.listen_fd = null_;
    return request;
  }

  std::unique_ptr<SandboxProcess> Launch(std::vector<std::string> entrypoint) {
    auto process =
        SandboxProcess::Launch(spawner_, CgroupRoots::Find(), Request(std::move(entrypoint)));
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }

  int RunToEnd(const std::string& script) {
    fs::remove(dir_ + "/status");
    auto process = Launch({"sh", "-c", script});
    if (process == nullptr) return -1;
    EXPECT_TRUE(Eventually([&] { return process->ended(); }));
    const ExitStatus exit = process->TakeExit();
    process->CleanUp();
    return exit.code;
  }

  std::string Log() { return Slurp(dir_ + "/log"); }

  std::string dir_;
  const int null_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  Spawner spawner_;
};

TEST_P(SandboxProcessTest, EndsWithTheEntrypointsCode) {
  EXPECT_EQ(RunToEnd("exit 3"), 3);
  EXPECT_EQ(RunToEnd("exit 0"), 0);
  EXPECT_EQ(RunToEnd("kill -9 $$"), 137);
}

TEST_P(SandboxProcessTest, LogsTheOutputWithTimesAndPassesTheEnvironment) {
  EXPECT_EQ(RunToEnd("echo out \"$GREETING\"; echo err >&2; printf last; exit 7"), 7);
  EXPECT_THAT(Log(), ContainsRegex("20[0-9-]+T[0-9:]+\\.[0-9]{9}Z starting OpenSandbox Execd"));
  EXPECT_THAT(Log(), ContainsRegex("Z out h i\n.*Z err\n.*Z last\n"));
}

TEST_P(SandboxProcessTest, ProgramsBeginWithoutIgnoredOrBlockedSignals) {
  RunToEnd("grep -E 'Sig(Ign|Blk)' /proc/self/status");
  EXPECT_THAT(Log(), ContainsRegex("SigBlk:\t0{16}\n.*SigIgn:\t0{16}\n"));
}

// Files take their own room, which is the disk's, and none of the programs' memory.
TEST_P(SandboxProcessTest, AFullDiskIsNotAFullMemory) {
  const CgroupRoots roots = CgroupRoots::Find();
  if (GetParam() == Isolation::kNone) GTEST_SKIP() << "files are not memory";
  LaunchRequest request = Request(
      {"sh", "-c", "head -c 40M /dev/zero > /tmp/a && head -c 40M /dev/zero > /tmp/b; echo $?"});
  request.limits.memory_bytes = 32 << 20;
  auto launched = SandboxProcess::Launch(spawner_, roots, std::move(request));
  ASSERT_TRUE(launched.ok()) << launched.status();
  auto process = *std::move(launched);
  bool limited = false;
  for (const std::string& dir : process->record().cgroups) {
    limited =
        limited || fs::exists(dir + "/memory.limit_in_bytes") || fs::exists(dir + "/memory.max");
  }
  ASSERT_TRUE(Eventually([&] { return process->ended(); }));
  EXPECT_EQ(process->TakeExit().code, 0) << Log();
  process->CleanUp();
  EXPECT_THAT(Log(), HasSubstr("No space left on device"));
  request = Request({"true"});
  request.limits.memory_bytes = INT64_MAX;
  launched = SandboxProcess::Launch(spawner_, roots, std::move(request));
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_TRUE(Eventually([&] { return (*launched)->ended(); }));
  (*launched)->TakeExit();
  (*launched)->CleanUp();
  if (!limited) GTEST_SKIP() << "no control group limits memory here";
}

TEST_P(SandboxProcessTest, MissingProgramIs127) {
  auto process = Launch({"nosuchbin"});
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(Eventually([&] { return process->ended(); }));
  EXPECT_EQ(process->TakeExit().code, 127);
  EXPECT_THAT(Log(), HasSubstr("nosuchbin: not found"));
  process->CleanUp();
}

TEST_P(SandboxProcessTest, OversizedArgumentFailsInsideLikeDockers) {
  auto process = Launch({"sh", "-c", "#" + std::string(200'000, 'x')});
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(Eventually([&] { return process->ended(); }));
  EXPECT_EQ(process->TakeExit().code, 1);
  EXPECT_THAT(Log(), HasSubstr("Z exec /opt/opensandbox/bootstrap.sh: argument list too long\n"));
  process->CleanUp();
}

TEST_P(SandboxProcessTest, DashCIsShellText) {
  auto process = Launch({"-c", "echo $((40 + 2)); exit 4"});
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(Eventually([&] { return process->ended(); }));
  EXPECT_EQ(process->TakeExit().code, 4);
  EXPECT_THAT(Log(), HasSubstr("Z 42\n"));
  process->CleanUp();
}

TEST_P(SandboxProcessTest, WallsOff) {
  if (GetParam() == Isolation::kNone) GTEST_SKIP() << "has no walls";
  const std::string name = "/x-" + fs::path(dir_).extension().string().substr(1) + ".txt";
  const std::string script = "echo $$; hostname; ls /tmp | wc -l; id -u; echo hi > " + name +
                             " && cat " + name + "; touch /tmp/t && echo tmp-ok; cat /proc/1/comm";
  RunToEnd(script);
  EXPECT_FALSE(fs::exists(name));
  EXPECT_THAT(Log(), HasSubstr("Z box\n"));
  EXPECT_THAT(Log(), HasSubstr("Z tmp-ok\n"));
  EXPECT_THAT(Log(), ContainsRegex("Z 0\n"));  // /tmp is empty, and the user is root
  EXPECT_THAT(Log(), HasSubstr("Z bootstrap.sh\n"));
  if (GetParam() == Isolation::kOverlay) {
    EXPECT_THAT(Log(), HasSubstr("Z hi\n"));
  } else {
    EXPECT_THAT(Log(), HasSubstr("Read-only file system"));
  }
}

TEST_P(SandboxProcessTest, KillLeavesNothing) {
  // Daemons that ignore signals, in sessions of their own.
  auto process = Launch(
      {"sh", "-c", "trap '' TERM HUP; setsid sleep 1234 & (sleep 1234 &) ; echo up; sleep 1234"});
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(Eventually([&] { return Log().find("Z up\n") != std::string::npos; }));
  const pid_t keeper = process->record().keeper;
  std::vector<ProcessStat> inside = Descendants(keeper);
  EXPECT_GE(inside.size(), 4u);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(process->Kill(absl::Seconds(10)).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_EQ(process->TakeExit().code, 137);
  for (const ProcessStat& stat : inside) {
    const std::optional<ProcessStat> now = ReadProcess(stat.pid);
    EXPECT_TRUE(!now || now->start_ticks != stat.start_ticks) << stat.pid << " " << now->state;
  }
  process->CleanUp();
  for (const std::string& dir : process->record().cgroups) EXPECT_FALSE(fs::exists(dir)) << dir;
}

TEST_P(SandboxProcessTest, PauseStopsTheClockOfEveryProcess) {
  auto process = Launch({"sh", "-c", "while true; do echo tick; sleep 0.01; done"});
  ASSERT_NE(process, nullptr);
  const auto ticks = [this] { return Log().size(); };
  ASSERT_TRUE(Eventually([&] { return ticks() > 1000; }));
  ASSERT_TRUE(process->Pause().ok());
  const size_t paused_at = ticks();
  usleep(100'000);
  EXPECT_EQ(ticks(), paused_at);
  ASSERT_TRUE(process->Resume().ok());
  EXPECT_TRUE(Eventually([&] { return ticks() > paused_at + 100; }));
  ASSERT_TRUE(process->Pause().ok());
  EXPECT_TRUE(process->Kill(absl::Seconds(10)).ok()) << "what is frozen must be killable";
  process->TakeExit();
  process->CleanUp();
}

TEST_P(SandboxProcessTest, AdoptsByRecordAndNotByPidAlone) {
  auto process = Launch({"sleep", "1000"});
  ASSERT_NE(process, nullptr);
  ProcessRecord record = process->record();
  record.keeper_start += 1;
  EXPECT_EQ(SandboxProcess::Adopt(record, dir_), nullptr);
  auto adopted = SandboxProcess::Adopt(process->record(), dir_);
  ASSERT_NE(adopted, nullptr);
  EXPECT_TRUE(adopted->Kill(absl::Seconds(10)).ok());
  process->TakeExit();
  EXPECT_EQ(SandboxProcess::Adopt(process->record(), dir_), nullptr);
  process->CleanUp();
}

TEST_P(SandboxProcessTest, DiesWithItsServer) {
  // A stand-in server is killed with SIGKILL; what it started must be gone soon after.
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t server = fork();
  if (server == 0) {
    Spawner spawner;
    auto process = SandboxProcess::Launch(spawner, CgroupRoots::Find(), Request({"sleep", "1000"}));
    const pid_t keeper = process.ok() ? (*process)->record().keeper : 0;
    (void)!write(pipe_ends[1], &keeper, sizeof(keeper));
    pause();
  }
  pid_t keeper = 0;
  ASSERT_EQ(read(pipe_ends[0], &keeper, sizeof(keeper)), static_cast<ssize_t>(sizeof(keeper)));
  ASSERT_GT(keeper, 0);
  std::vector<ProcessStat> inside;
  EXPECT_TRUE(Eventually([&] { return (inside = Descendants(keeper)).size() >= 2; }));
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  const auto all_gone = [&inside] {
    for (const ProcessStat& stat : inside) {
      const std::optional<ProcessStat> now = ReadProcess(stat.pid);
      if (now && now->start_ticks == stat.start_ticks && now->state != 'Z') return false;
    }
    return true;
  };
  EXPECT_TRUE(Eventually(all_gone));
  // Empty groups are what a killed server leaves; its successor removes them.
  const CgroupRoots roots = CgroupRoots::Find();
  std::vector<std::string> groups;
  for (const std::string& root : {roots.unified, roots.pids, roots.freezer}) {
    groups.push_back(root + "/local-opensandbox/" + Request({}).id);
  }
  ReapRecord({.isolation = GetParam(), .cgroups = groups}, Request({}).id);
  for (const std::string& group : groups) EXPECT_FALSE(fs::exists(group)) << group;
}

TEST_P(SandboxProcessTest, BadMountIsAnErrorWithItsReason) {
  if (GetParam() == Isolation::kNone) GTEST_SKIP() << "mounts nothing";
  LaunchRequest request = Request({"true"});
  request.root.binds = {{"/nonexistent-source", "/data", false}};
  auto process = SandboxProcess::Launch(spawner_, CgroupRoots::Find(), std::move(request));
  ASSERT_FALSE(process.ok());
  EXPECT_THAT(std::string(process.status().message()), HasSubstr("nonexistent-source"));
}

TEST_P(SandboxProcessTest, ProbeSaysYes) {
  const absl::Status status =
      ProbeIsolation(GetParam(), fs::absolute("bridge/local/runtime/bootstrap"), dir_);
  EXPECT_TRUE(status.ok()) << status;
}

INSTANTIATE_TEST_SUITE_P(Levels, SandboxProcessTest,
                         ::testing::Values(Isolation::kOverlay, Isolation::kBwrap,
                                           Isolation::kNone),
                         [](const auto& info) { return std::string(IsolationName(info.param)); });

}  // namespace
}  // namespace bridge::local::runtime
