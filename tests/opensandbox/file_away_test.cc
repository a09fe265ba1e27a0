// SPDX-License-Identifier: Apache-2.0
//
// A sandbox that goes away between two calls: what is told is what its record says, and not that
// the OpenSandbox server was away.
#include <signal.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "tests/opensandbox/file_fixture.h"

namespace bridge {
namespace {

using R = ErrorReason;

INSTANTIATE_TEST_SUITE_P(Daemons, Files, EveryDaemon(), WayName);

// Each of these was UPSTREAM_UNAVAILABLE on one daemon or the other.
TEST_P(Files, OfASandboxThatWentAway) {
  Put("f", "x");
  ASSERT_TRUE(Stat(P("f")).ok());  // the daemon is known now
  execd.Kill(SIGKILL);
  const std::vector<std::pair<const char*, std::function<absl::Status()>>> calls = {
      {"stat", [this] { return Stat(P("f")).status(); }},
      {"read", [this] { return Read(P("f")).status(); }},
      {"list", [this] { return List(dir, 1).status(); }},
      {"write", [this] { return Write({.path = P("g")}, "y").status(); }},
      {"make",
       [this] {
         return RunTask(bench.loop,
                        [this] {
                          return files.MakeDirectory(bench.context, bench.box, P("d"),
                                                     DirectoryMake());
                        })
             .status();
       }},
      {"remove",
       [this] {
         return RunTask(bench.loop, [this] {
           return files.Remove(bench.context, bench.box, P("f"), /*recursive=*/false);
         });
       }},
  };
  for (const auto& [name, call] : calls) {
    bench.directory.SetExplanation(absl::OkStatus());
    absl::Status status = call();
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_SANDBOX_UNREACHABLE) << name << ": " << status;
    bench.directory.SetExplanation(MakeError(R::ERROR_REASON_SANDBOX_NOT_RUNNING, "it is paused"));
    status = call();
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_SANDBOX_NOT_RUNNING) << name << ": " << status;
  }
}

}  // namespace
}  // namespace bridge
