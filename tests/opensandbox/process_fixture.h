// SPDX-License-Identifier: Apache-2.0
//
// tests/opensandbox/process_fixture.h — processes on a real daemon of either version, and what an
// attachment saw.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/opensandbox/process_client.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {

struct Seen {
  absl::Status status;
  Attached attached;
  std::string out;
  std::string err;
  std::string merged;
  int64_t next = 0;
  int64_t taken = 0;
  std::optional<Outcome> outcome;
  bool drained = false;
  bool displaced = false;
};

inline std::string Nap() {
  static int count = 0;
  return "7000." + std::to_string(getpid()) + std::to_string(++count);
}

// The wrapper's own command line quotes the program's: only the program has it as arguments.
inline std::vector<pid_t> Sleepers(const std::string& nap) {
  return ProcessesWith(std::string("sleep\0", 6) + nap);
}
// A process that was killed takes a moment to be gone.
inline bool AllGone(const std::string& nap) {
  const absl::Time until = absl::Now() + absl::Seconds(10);
  while (!Sleepers(nap).empty()) {
    if (absl::Now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

class Processes : public ::testing::TestWithParam<const char*> {
 protected:
  Processes()
      : execd({std::string("--compat=") + GetParam(), "--extras=false"}), bench(execd.url()) {}
  ~Processes() override {
    for (const std::string& id : made) {
      (void)RunTask(bench.loop, [&] { return processes.Delete({}, {"box", ""}, id); });
    }
  }

  std::string Start(ProcessSpec spec, bool on_attach = false) {
    auto started = RunTask(
        bench.loop, [&] { return processes.Start({}, {"box", ""}, std::move(spec), on_attach); });
    EXPECT_TRUE(started.ok()) << started.status();
    if (!started.ok()) return "";
    made.push_back(started->process_id);
    return started->process_id;
  }
  // Attaches and reads to the end, or until `enough` is in the output.
  Seen Attach(const std::string& id, AttachOptions options, const std::string& input = "",
              const std::string& enough = "", const std::string& input_after = "") {
    return RunTask(bench.loop, [&]() -> Task<Seen> {
      Seen seen;
      auto attachment = co_await processes.Attach(bench.context, bench.box, id, options);
      seen.status = attachment.status();
      if (!attachment.ok()) co_return seen;
      bool sent = input.empty();
      while (!seen.drained && !seen.displaced) {
        absl::StatusOr<ProcessEvent> event = co_await (*attachment)->Next();
        seen.status = event.status();
        if (!event.ok()) co_return seen;
        Take(*event, &seen);
        if (!sent && seen.merged.find(input_after) != std::string::npos) {
          sent = true;
          seen.status = co_await (*attachment)->SendInput(0, input);
          if (!seen.status.ok()) co_return seen;
        }
        if (!enough.empty() && seen.merged.find(enough) != std::string::npos) co_return seen;
      }
      co_return seen;
    });
  }
  static void Take(const ProcessEvent& event, Seen* seen) {
    if (const auto* attached = std::get_if<Attached>(&event)) {
      seen->attached = *attached;
      seen->next = attached->offset;
    } else if (const auto* output = std::get_if<ProcessOutput>(&event)) {
      EXPECT_EQ(output->offset, seen->next);
      seen->next = output->offset + static_cast<int64_t>(output->data.size());
      seen->merged += output->data;
      if (output->stream) {
        (*output->stream == StreamId::kStdout ? seen->out : seen->err) += output->data;
      }
    } else if (const auto* taken = std::get_if<StdinTaken>(&event)) {
      seen->taken = taken->offset;
    } else if (const auto* exited = std::get_if<ProcessExited>(&event)) {
      EXPECT_FALSE(seen->outcome.has_value());
      seen->outcome = exited->outcome;
    } else if (std::holds_alternative<Displaced>(event)) {
      seen->displaced = true;
    } else {
      seen->drained = true;
      EXPECT_EQ(std::get<ProcessDrained>(event).end_offset, seen->next);
    }
  }

  ExecdProcess execd;
  ExecBench bench;
  ProcessClient processes{bench.daemon, bench.background, bench.client};
  std::vector<std::string> made;
};

}  // namespace bridge
