// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/process.h — what one can ask about and do to a process of this machine that may not
// be our child. A process is its id and its start time, so that a recycled id is not mistaken for
// it. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace bridge::local::runtime {

struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';          // 'T' stopped, 'Z' zombie
  uint64_t start_ticks = 0;  // since boot
};

// The content of /proc/PID/stat.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);
std::optional<ProcessStat> ReadProcess(pid_t pid);
std::vector<ProcessStat> ReadAllProcesses();
// All processes below `root`, itself not included.
std::vector<ProcessStat> Descendants(pid_t root);

// A handle on a process that cannot come to mean another one.
class ProcessHandle {
 public:
  // Nothing when there is no such process, or (start_ticks != 0) when it is another one by now.
  static std::optional<ProcessHandle> Open(pid_t pid, uint64_t start_ticks = 0);
  ProcessHandle() = default;
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;
  ~ProcessHandle();

  pid_t pid() const { return pid_; }
  uint64_t start_ticks() const { return start_ticks_; }
  int fd() const { return fd_; }  // becomes readable when the process ends
  bool Signal(int signal) const;
  bool ended() const { return WaitEnd(absl::InfinitePast()); }
  // True at once when there is no process (any more).
  bool WaitEnd(absl::Time deadline) const;

 private:
  pid_t pid_ = 0;
  uint64_t start_ticks_ = 0;
  int fd_ = -1;
};

// Stops everything below `root` until nothing new appears. Returns those that were running before,
// for ContinueProcesses. For systems without a freezer.
std::vector<pid_t> StopDescendants(pid_t root);
void ContinueProcesses(const std::vector<pid_t>& pids);

// Kills all processes whose environment has `entry` ("NAME=value").
void KillByEnvironment(std::string_view entry);

}  // namespace bridge::local::runtime
