// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/process.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "bridge/base/read_file.h"

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 forgets to say so itself
}

namespace bridge::local::runtime {
namespace {

std::string ProcPath(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::vector<pid_t> AllPids() {
  std::vector<pid_t> pids;
  DIR* dir = opendir("/proc");
  if (dir == nullptr) return pids;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
  }
  closedir(dir);
  return pids;
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // "PID (name) S PPID …": the name may hold anything, also parentheses and spaces.
  const size_t close = text.rfind(')');
  if (close == std::string_view::npos) return std::nullopt;
  ProcessStat stat;
  stat.pid = static_cast<pid_t>(std::atol(std::string(text.substr(0, 20)).c_str()));
  std::istringstream rest{std::string(text.substr(close + 1))};
  rest >> stat.state >> stat.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) rest >> skipped;
  rest >> stat.start_ticks;
  if (!rest || stat.pid <= 0) return std::nullopt;
  return stat;
}

std::optional<ProcessStat> ReadProcess(pid_t pid) {
  return ParseProcessStat(ReadFile(ProcPath(pid, "stat")).value_or(""));
}

std::vector<ProcessStat> ReadAllProcesses() {
  std::vector<ProcessStat> all;
  for (const pid_t pid : AllPids()) {
    if (const std::optional<ProcessStat> stat = ReadProcess(pid)) all.push_back(*stat);
  }
  return all;
}

std::vector<ProcessStat> Descendants(pid_t root) {
  std::multimap<pid_t, ProcessStat> children;
  for (const ProcessStat& stat : ReadAllProcesses()) children.emplace(stat.parent, stat);
  std::vector<ProcessStat> found;
  std::vector<pid_t> open{root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto it = begin; it != end; ++it) {
      found.push_back(it->second);
      open.push_back(it->second.pid);
    }
  }
  return found;
}

std::optional<ProcessHandle> ProcessHandle::Open(pid_t pid, uint64_t start_ticks) {
  ProcessHandle handle;
  handle.fd_ = pidfd_open(pid, 0);
  if (handle.fd_ < 0) return std::nullopt;
  // Read behind the open: from here on the id cannot be given to another process unnoticed.
  const std::optional<ProcessStat> stat = ReadProcess(pid);
  if (!stat || (start_ticks != 0 && stat->start_ticks != start_ticks)) return std::nullopt;
  handle.pid_ = pid;
  handle.start_ticks_ = stat->start_ticks;
  return handle;
}

ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept
    : pid_(other.pid_), start_ticks_(other.start_ticks_), fd_(std::exchange(other.fd_, -1)) {}

ProcessHandle& ProcessHandle::operator=(ProcessHandle&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(start_ticks_, other.start_ticks_);
  std::swap(fd_, other.fd_);
  return *this;
}

ProcessHandle::~ProcessHandle() {
  if (fd_ >= 0) close(fd_);
}

bool ProcessHandle::Signal(int signal) const {
  return fd_ >= 0 && pidfd_send_signal(fd_, signal, nullptr, 0) == 0;
}

bool ProcessHandle::WaitEnd(absl::Time deadline) const {
  if (fd_ < 0) return true;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    const int64_t ms = absl::ToInt64Milliseconds(left + absl::Microseconds(999));
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000))) > 0) return true;
    if (left <= absl::ZeroDuration()) return false;
  }
}

std::vector<pid_t> StopDescendants(pid_t root) {
  std::vector<pid_t> stopped;
  std::set<pid_t> seen;
  // A process that is about to be stopped can still fork, so look again until nothing is new.
  for (int round = 0; round < 100; ++round) {
    bool fresh = false;
    for (const ProcessStat& stat : Descendants(root)) {
      if (!seen.insert(stat.pid).second || stat.state == 'Z') continue;
      fresh = true;
      if (stat.state == 'T' || stat.state == 't') continue;
      if (kill(stat.pid, SIGSTOP) == 0) stopped.push_back(stat.pid);
    }
    if (!fresh) break;
  }
  return stopped;
}

void ContinueProcesses(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) kill(pid, SIGCONT);
}

void KillByEnvironment(std::string_view entry) {
  const std::string wanted = std::string(entry) + '\0';
  for (int round = 0; round < 20; ++round) {
    bool any = false;
    for (const pid_t pid : AllPids()) {
      const std::string env = ReadFile(ProcPath(pid, "environ")).value_or("");
      const size_t at = env.find(wanted);
      if (at == std::string::npos || (at > 0 && env[at - 1] != '\0')) continue;
      any = kill(pid, SIGKILL) == 0 || any;
    }
    if (!any) return;
    usleep(1000);
  }
}

}  // namespace bridge::local::runtime
