// SPDX-License-Identifier: Apache-2.0
//
// local/execd/proc_tree.h — what /proc says of processes. Any thread; each call reads anew.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bridge::local::execd {

// The fields of /proc/PID/stat that are used here.
struct ProcStat {
  pid_t pid = 0;
  std::string comm;  // at most 15 bytes, any bytes
  char state = '?';
  pid_t ppid = 0;
  pid_t pgid = 0;
  pid_t sid = 0;
  int64_t cpu_ticks = 0;  // user and system
  int64_t threads = 0;
  int64_t start_ticks = 0;  // since boot
  int64_t rss_pages = 0;
};

// Reads a line of /proc/PID/stat. The name may hold spaces and parentheses.
std::optional<ProcStat> ParseProcStat(const std::string& text);

// Nothing when there is no such process.
std::optional<ProcStat> ReadProcStat(pid_t pid);

// All processes that can be seen, by ascending pid.
std::vector<ProcStat> ReadAllProcesses();

// Children, their children and so on, without zombies.
std::vector<pid_t> DescendantsOf(pid_t pid);

}  // namespace bridge::local::execd
