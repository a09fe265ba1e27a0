// SPDX-License-Identifier: Apache-2.0
//
// tests/opensandbox/exec_fixture.h — an ExecClient on a loop of its own, and what a command
// printed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bridge/net/event_loop.h"
#include "bridge/net/http.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/exec_client.h"
#include "tests/fakes/fixed_directory.h"
#include "tests/fakes/run_task.h"

namespace bridge {

// A daemon as a test runs against it: its name and execd's flags.
struct Way {
  const char* name;
  std::vector<std::string> flags;
};

// Stock ones of both versions, and our own: what each must do alike is tested on all of them, by
// INSTANTIATE_TEST_SUITE_P(Daemons, TheSuite, EveryDaemon(), WayName).
inline auto EveryDaemon() {
  return ::testing::Values(Way{"stock110", {"--compat=1.1.0", "--extras=false"}},
                           Way{"current", {"--compat=current", "--extras=false"}}, Way{"own", {}});
}
inline std::string WayName(const ::testing::TestParamInfo<Way>& info) { return info.param.name; }

// All that an exec reported.
struct ExecResult {
  absl::Status status;
  std::string id;
  ExecFidelity fidelity = ExecFidelity::kBytes;
  std::string out;
  std::string err;
  std::optional<Outcome> outcome;
  std::optional<absl::Duration> ran_for;
  ExecBatch last;  // with the totals
};

class ExecBench {
 public:
  explicit ExecBench(std::string url) : directory(std::move(url)), daemon(http, directory) {}
  ~ExecBench() {
    RunTask(loop, [this]() -> Task<void> { co_await background.Drain(loop, absl::Seconds(30)); });
  }

  // Runs a command to its end.
  ExecResult Run(ExecSpec spec, absl::Duration patience = absl::Seconds(5)) {
    return RunTask(loop, [&]() -> Task<ExecResult> {
      ExecResult result;
      auto exec = co_await client.Start(context, box, std::move(spec), patience);
      result.status = exec.status();
      if (exec.ok()) co_await Collect(**exec, &result, patience);
      co_return result;
    });
  }
  ExecResult Attach(const std::string& id, int64_t out = 0, int64_t err = 0) {
    return RunTask(loop, [&]() -> Task<ExecResult> {
      ExecResult result;
      auto exec = co_await client.Attach(context, box, id, out, err, false, absl::Seconds(5));
      result.status = exec.status();
      if (exec.ok()) co_await Collect(**exec, &result, absl::Seconds(5));
      co_return result;
    });
  }
  // Starts a command, waits until it printed `until` on stdout, and drops it.
  std::string StartAndDrop(ExecSpec spec, std::string until) {
    return RunTask(loop, [&]() -> Task<std::string> {
      auto exec = co_await client.Start(context, box, std::move(spec), absl::Seconds(1));
      if (!exec.ok()) co_return "";
      std::string seen;
      ExecBatch batch;
      // The end may be told before the last output.
      while (seen.find(until) == std::string::npos && !batch.drained) {
        const absl::Status status = co_await (*exec)->Next(&batch, absl::Seconds(1));
        if (!status.ok()) co_return "";
        for (const ExecOutput& output : batch.outputs) seen += output.data;
      }
      co_return (*exec)->id();
    });
  }
  absl::StatusOr<ExecSignalResult> Signal(const std::string& id, int signal) {
    return RunTask(loop, [&] { return client.Signal({}, {"box", ""}, id, signal); });
  }
  absl::StatusOr<ExecInfo> Get(const std::string& id) {
    return RunTask(loop, [&] { return client.Get({}, {"box", ""}, id); });
  }
  // Waits for everything that outlives its call.
  void Settle() {
    RunTask(loop, [this]() -> Task<void> { co_await background.Drain(loop, absl::Seconds(30)); });
  }

  const CallContext context;
  const SandboxTarget box{"box", ""};
  EventLoop loop;
  HttpClient http{loop};
  TaskScope background;
  FixedDirectory directory;
  DaemonClient daemon;
  ExecClient client{daemon, background};

 private:
  Task<void> Collect(Exec& exec, ExecResult* result, absl::Duration patience) {
    result->id = exec.id();
    result->fidelity = exec.fidelity();
    while (!result->last.drained) {
      result->status = co_await exec.Next(&result->last, patience);
      if (!result->status.ok()) co_return;
      for (const ExecOutput& output : result->last.outputs) {
        std::string& text = output.stream == StreamId::kStdout ? result->out : result->err;
        EXPECT_EQ(output.offset, static_cast<int64_t>(text.size()));
        text += output.data;
      }
      if (result->last.exited) {
        EXPECT_FALSE(result->outcome.has_value()) << "an exec ends once";
        result->outcome = result->last.exited;
        result->ran_for = result->last.ran_for;
      }
    }
  }
};

}  // namespace bridge
