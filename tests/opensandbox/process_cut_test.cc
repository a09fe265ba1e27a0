// SPDX-License-Identifier: Apache-2.0
//
// A start that is cut, at any moment of it, leaves nothing on a real daemon.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bridge/opensandbox/process_client.h"
#include "bridge/opensandbox/process_script.h"
#include "tests/opensandbox/process_fixture.h"

namespace bridge {
namespace {

namespace fs = std::filesystem;

class ProcessCut : public Processes {
 protected:
  // Starts a process and cuts that after `patience`. What came of it, if it was faster.
  std::optional<ProcessClient::Started> StartWithin(absl::Duration patience, ProcessSpec spec,
                                                    bool on_attach) {
    return RunTask(bench.loop, [&]() -> Task<std::optional<ProcessClient::Started>> {
      std::optional<ProcessClient::Started> started;
      (void)co_await RunWithin(bench.loop, patience, [&]() -> Task<void> {
        auto made = co_await processes.Start(bench.context, bench.box, spec, on_attach);
        if (made.ok()) started = *std::move(made);
      });
      co_return started;
    });
  }
  std::vector<std::string> Folders() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(execd.tmpdir())) {
      const std::string name = entry.path().filename();
      if (name.starts_with(".sandbox-bridge-p-")) names.push_back(name);
    }
    return names;
  }
};

INSTANTIATE_TEST_SUITE_P(Daemons, ProcessCut, ::testing::Values("1.1.0", "current"),
                         [](const auto& info) {
                           return std::string(info.param) == "current" ? "current" : "v110";
                         });

// Processes that had been taken away came back as folders, which the rest of their own making made
// again, and were listed for ever.
TEST_P(ProcessCut, LeavesNothingWheneverItIsCut) {
  const std::string nap = Nap();
  Start({.shell = ":"});  // the daemon is known from now on
  const std::vector<std::string> before = Folders();
  EXPECT_EQ(before.size(), 1u);
  int cut = 0;
  for (int i = 0; i < 60; ++i) {
    ProcessSpec spec{.argv = {"sleep", nap}};
    if (i % 3 == 1) spec.terminal = TerminalSize{};
    const auto started = StartWithin(absl::Microseconds(700 * (i % 30)), spec, i % 5 == 0);
    if (started) {
      const std::string id = started->process_id;
      EXPECT_TRUE(*RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); }));
    } else {
      ++cut;
    }
  }
  EXPECT_GT(cut, 10);
  bench.Settle();
  EXPECT_TRUE(AllGone(nap)) << Sleepers(nap).size() << " run of which nobody was told";
  EXPECT_EQ(Folders(), before);
  const auto own = RunTask(bench.loop, [&] { return processes.List({}, {"box", ""}, false); });
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->size(), 1u);
}

}  // namespace
}  // namespace bridge
