// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_types.h — long-lived processes and terminals as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

struct TerminalSize {
  uint16_t rows = 24;
  uint16_t columns = 80;
};

// At most one of argv and shell is non-empty; neither: the sandbox's shell.
struct ProcessSpec {
  std::vector<std::string> argv = {};
  std::string shell = {};
  std::optional<TerminalSize> terminal = {};
  std::string cwd = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  UserSpec user = {};
};

enum class ProcessState { kRunning, kPending, kExited, kStopped, kZombie };

struct ProcessInfo {
  std::string process_id = {};  // empty: not ours
  int64_t pid = 0;
  int64_t parent_pid = 0;
  int64_t group_id = 0;
  std::string user = {};
  std::vector<std::string> command_line = {};
  ProcessState state = ProcessState::kRunning;
  std::optional<Outcome> outcome = {};
  absl::Time started_at = absl::InfinitePast();
  bool terminal = false;
  std::optional<int64_t> output_offset = {};  // absent: unknown
};

struct ProcessSignal {
  int signal = 0;
  bool group = false;
};

// What an attachment reports, in this order: Attached, (ProcessOutput | StdinTaken)*, then
// Displaced, or ProcessExited and ProcessDrained.
struct Attached {
  int64_t offset = 0;
  bool running = false;
  bool restarted = false;
  bool streams_apart = false;
};
struct ProcessOutput {
  int64_t offset = 0;
  std::optional<StreamId> stream = {};  // absent: no longer known
  std::string data = {};
};
struct StdinTaken {
  int64_t offset = 0;
};
struct Displaced {};
struct ProcessExited {
  Outcome outcome = {};
};
struct ProcessDrained {
  int64_t end_offset = 0;
};
using ProcessEvent =
    std::variant<Attached, ProcessOutput, StdinTaken, Displaced, ProcessExited, ProcessDrained>;

}  // namespace bridge
