// SPDX-License-Identifier: Apache-2.0
//
// What GetCapabilities says of a daemon, beside what happens on it.
#include "bridge/opensandbox/capabilities.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/file_client.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {
namespace {

using R = ErrorReason;
using Level = CapabilityLevel;

class Capabilities : public ::testing::TestWithParam<Way> {
 protected:
  Capabilities() : execd(GetParam().flags), bench(execd.url()) {
    const auto sandbox = RunTask(bench.loop, [&]() -> Task<absl::StatusOr<SandboxHandle>> {
      co_return co_await FindSandbox(bench.daemon, bench.background, bench.context, bench.box);
    });
    EXPECT_TRUE(sandbox.ok()) << sandbox.status();
    if (!sandbox.ok()) return;
    daemon = DaemonName(*sandbox->capabilities);
    for (Capability& row : CapabilitiesOf(*sandbox->capabilities)) rows[row.feature] = row;
  }

  // FULL and it works, or NONE and it is refused by this name.
  void Expect(const std::string& feature, const absl::Status& status, bool exact) {
    ASSERT_TRUE(rows.contains(feature)) << feature;
    const Capability& row = rows.at(feature);
    EXPECT_EQ(status.ok() && exact, row.level == Level::kFull) << feature << ": " << status;
    if (row.level != Level::kFull) {
      EXPECT_NE(row.note, "") << feature << " must say why";
    }
    if (row.level != Level::kNone) return;
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_UNSUPPORTED_FEATURE) << feature << ": " << status;
  }

  ExecdProcess execd;
  ExecBench bench;
  FileClient files{bench.daemon, bench.background};
  std::string daemon;
  std::map<std::string, Capability> rows;
};

INSTANTIATE_TEST_SUITE_P(Daemons, Capabilities, EveryDaemon(), WayName);

TEST_P(Capabilities, NamesTheDaemon) {
  EXPECT_EQ(daemon, GetParam().flags.empty() ? "bridge execd" : "stock execd");
}

TEST_P(Capabilities, SayWhatHappensToACommand) {
  ExecResult ran = bench.Run({.shell = "exit 3"});
  Expect("exec.shell", ran.status, ran.outcome == Outcome(ExitCode{3}));
  ran = bench.Run({.argv = {"printf", "%s", "a b$c"}});
  Expect("exec.argv", ran.status, ran.out == "a b$c");
  ran = bench.Run({.shell = "printf 'a\\r\\n\\n\\377b'; printf 'e\\0' >&2"});
  EXPECT_EQ(ran.out,
            "a\r\n\n\xff"
            "b");
  EXPECT_EQ(ran.err, std::string("e\0", 2));
  const ExecResult anew = bench.Run({.shell = "echo a >&2; echo b >/dev/stderr"});
  Expect("exec.bytes", ran.status, anew.err == "a\nb\n");
  ran = bench.Run({.argv = {"cat"}, .stdin_bytes = "in\xff"});
  Expect("exec.stdin", ran.status, ran.out == "in\xff");
  ran = bench.Run({.argv = {"sleep", "100"}, .timeout = absl::Milliseconds(200)});
  Expect("exec.timeout", ran.status, ran.outcome && std::holds_alternative<TimedOut>(*ran.outcome));
}

TEST_P(Capabilities, SayWhatHappensToADetachedCommand) {
  const std::string id = bench.StartAndDrop(
      {.shell = "trap 'echo got; exit 4' USR1; echo on; while :; do sleep 0.01; done",
       .detach_on_disconnect = true},
      "on\n");
  const auto signalled = bench.Signal(id, SIGUSR1);
  Expect("exec.signal", signalled.status(), signalled.ok() && signalled->delivery_confirmed);
  const ExecResult again = bench.Attach(id);
  Expect("exec.attach", again.status,
         again.out == "on\ngot\n" && again.outcome == Outcome(ExitCode{4}));
}

TEST_P(Capabilities, SayWhatHappensToAttributes) {
  const std::string path = execd.tmpdir() + "/f";
  std::ofstream(path) << "x";
  const absl::Time exact = absl::FromUnixMillis(1'000'000'000'123);
  const auto info = RunTask(bench.loop, [&] {
    return files.SetAttributes(bench.context, bench.box, path, {.modified_at = exact});
  });
  Expect("files.attributes", info.status(), info.ok() && info->modified_at == exact);
}

TEST_P(Capabilities, SayWhatHappensToAWatch) {
  const absl::Status status = RunTask(bench.loop, [&]() -> Task<absl::Status> {
    auto watcher =
        co_await files.Watch(bench.context, bench.box, execd.tmpdir(), false, absl::Seconds(1));
    co_return watcher.status();
  });
  Expect("files.watch", status, true);
}

}  // namespace
}  // namespace bridge
