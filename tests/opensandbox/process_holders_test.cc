// SPDX-License-Identifier: Apache-2.0
//
// Holders of one process that come and go at the same time, on a real daemon.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/process_client.h"
#include "bridge/opensandbox/process_script.h"
#include "bridge/opensandbox/remote_command.h"
#include "tests/opensandbox/process_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using R = ErrorReason;
namespace fs = std::filesystem;

class ProcessHolders : public Processes {
 protected:
  using Attachments = std::vector<absl::StatusOr<std::unique_ptr<ProcessAttachment>>>;

  // That many attach at once; what they have is theirs until all were answered.
  void AttachAtOnce(const std::string& id, AttachOptions options, int count, Attachments* all) {
    RunTask(bench.loop, [&]() -> Task<void> {
      TaskScope scope;
      for (int i = 0; i < count; ++i) {
        scope.Start("attach", [&]() -> Task<void> {
          auto attachment = co_await processes.Attach(bench.context, bench.box, id, options);
          all->push_back(std::move(attachment));
        });
      }
      co_await scope.Drain(bench.loop, absl::Seconds(60));
    });
  }
  void Drop(Attachments* all) {
    RunTask(bench.loop, [&]() -> Task<void> {
      all->clear();
      co_return;
    });
  }
  static std::vector<std::string> Lines(const fs::path& path) {
    std::ifstream file(path);
    return {std::istream_iterator<std::string>(file), {}};
  }
};

INSTANTIATE_TEST_SUITE_P(Daemons, ProcessHolders, ::testing::Values("1.1.0", "current"),
                         [](const auto& info) {
                           return std::string(info.param) == "current" ? "current" : "v110";
                         });

// Those who asked for a run that another one had got were told that a script was killed, for want
// of memory.
TEST_P(ProcessHolders, WhoAskForOneMoreRunGetOne) {
  const std::string nap = Nap();
  const fs::path runs = fs::path(::testing::TempDir()) / ("runs" + Nap());
  const std::string file = runs.string();
  const std::string id = Start(
      {.shell = "echo run >>" + file + "; [ $(wc -l <" + file + ") -lt 2 ] || exec sleep " + nap});
  EXPECT_EQ(Attach(id, {.offset = 0}).outcome, Outcome(ExitCode{0}));
  Attachments all;
  AttachAtOnce(id, {.takeover = true, .restart_if_exited = true}, 8, &all);
  int held = 0;
  for (const auto& attachment : all) {
    if (attachment.ok()) ++held;
    if (attachment.ok()) continue;
    EXPECT_EQ(ReasonOf(attachment.status()), R::ERROR_REASON_ALREADY_ATTACHED)
        << attachment.status();
  }
  EXPECT_GE(held, 1);
  Drop(&all);
  while (Sleepers(nap).empty()) std::this_thread::yield();
  EXPECT_THAT(Lines(runs), SizeIs(2));
  // One who asks for it when it is long over gets no other.
  const std::string folder = ProcessFolder(execd.tmpdir(), id.substr(id.rfind('.') + 1));
  const fs::path script = fs::path(::testing::TempDir()) / ("script" + Nap());
  std::ofstream(script) << RestartScript(folder, 1);
  EXPECT_EQ(std::system(("sh " + script.string()).c_str()), 0);
  EXPECT_THAT(Sleepers(nap), SizeIs(1));
  EXPECT_TRUE(*RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); }));
  EXPECT_THAT(Lines(runs), SizeIs(2));
}

// The daemon does not read what comes behind input that the program does not take: not the news
// that nobody holds the process any more, either.
TEST_P(ProcessHolders, StuckInputDoesNotHoldAProcess) {
  for (const size_t size : {size_t{300'000}, size_t{16} << 20}) {
    const bool terminal = size < (size_t{1} << 20);
    ProcessSpec spec{.shell = "stty raw 2>/dev/null; echo up; exec sleep " + Nap()};
    if (terminal) spec.terminal = TerminalSize{};
    const std::string id = Start(spec);
    const absl::Duration taken = RunTask(bench.loop, [&]() -> Task<absl::Duration> {
      const AttachOptions polite{.offset = 0};
      auto first = co_await processes.Attach(bench.context, bench.box, id, polite);
      EXPECT_TRUE(first.ok()) << first.status();
      if (!first.ok()) co_return absl::InfiniteDuration();
      const std::string much(size, 'x');
      // Input fills the program's pipe or terminal, or all buffers on the way there.
      (void)co_await RunWithin(bench.loop, absl::Milliseconds(500), [&]() -> Task<void> {
        (void)co_await (*first)->SendInput(0, much);
      });
      first->reset();
      const absl::Duration cut = bench.loop.Now();
      absl::Status second;
      do {
        auto attachment = co_await processes.Attach(bench.context, bench.box, id, polite);
        second = attachment.status();
      } while (ReasonOf(second) == R::ERROR_REASON_ALREADY_ATTACHED);
      EXPECT_TRUE(second.ok()) << second;
      co_return bench.loop.Now() - cut;
    });
    EXPECT_LT(taken, absl::Milliseconds(1500));
  }
}

TEST_P(ProcessHolders, AScriptsDeathHasNoCauseThatNobodyKnows) {
  const auto why = [this](const std::string& signal) {
    const auto ended = RunTask(bench.loop, [&] {
      return RunScript(bench.daemon, bench.context, bench.directory.daemon(),
                       "kill -" + signal + " $$", nullptr);
    });
    EXPECT_EQ(ReasonOf(ended.status()), R::ERROR_REASON_UPSTREAM_FAILED);
    return std::string(ended.status().message());
  };
  EXPECT_THAT(why("PIPE"), AllOf(HasSubstr("SIGPIPE"), Not(HasSubstr("memory"))));
  EXPECT_THAT(why("KILL"), AllOf(HasSubstr("SIGKILL"), HasSubstr("memory")));
}

}  // namespace
}  // namespace bridge
