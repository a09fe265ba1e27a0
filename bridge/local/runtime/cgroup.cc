// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bridge/base/read_file.h"

namespace bridge::local::runtime {
namespace {

constexpr char kParent[] = "/local-opensandbox";
constexpr absl::Duration kFreezeTimeout = absl::Seconds(5);

bool WriteFile(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool MakeDir(const std::string& path) { return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST; }

// The group of `name` below a hierarchy's root, or "" where it cannot be made.
std::string MakeGroup(const std::string& root, const std::string& name) {
  if (root.empty()) return "";
  std::string dir = root + kParent + "/" + name;
  // Whoever removes the last group removes the parent too, perhaps just now.
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (!MakeDir(root + kParent)) return "";
    if (MakeDir(dir)) return dir;
  }
  return "";
}

void SetUnifiedLimits(const std::string& root, const std::string& dir, const CgroupLimits& limits) {
  // A controller must be handed down level by level. Refused in some containers; then no limits.
  for (const char* controller : {"+memory", "+pids", "+cpu"}) {
    WriteFile(root + "/cgroup.subtree_control", controller);
    WriteFile(root + kParent + "/cgroup.subtree_control", controller);
  }
  if (limits.memory_bytes) WriteFile(dir + "/memory.max", std::to_string(*limits.memory_bytes));
  if (limits.cpu_millis) {
    WriteFile(dir + "/cpu.max", std::to_string(*limits.cpu_millis * 100) + " 100000");
  }
  WriteFile(dir + "/pids.max", std::to_string(limits.pids));
}

template <class Condition>
bool WaitFor(absl::Duration timeout, Condition condition) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::Duration step = absl::Microseconds(200);
  while (!condition()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(step);
    step = std::min(step * 2, absl::Milliseconds(20));
  }
  return true;
}

}  // namespace

CgroupRoots CgroupRoots::Find(const std::string& mount) {
  CgroupRoots roots;
  const auto is_unified = [](const std::string& dir) {
    return Exists(dir + "/cgroup.controllers");
  };
  if (is_unified(mount)) {
    roots.unified = mount;
    return roots;
  }
  if (is_unified(mount + "/unified")) roots.unified = mount + "/unified";
  const auto v1 = [&mount](const char* name) {
    const std::string dir = mount + "/" + name;
    return Exists(dir + "/cgroup.procs") ? dir : std::string();
  };
  roots.memory = v1("memory");
  roots.cpu = v1("cpu");
  roots.pids = v1("pids");
  roots.freezer = v1("freezer");
  return roots;
}

Cgroup Cgroup::Create(const CgroupRoots& roots, const std::string& name,
                      const CgroupLimits& limits) {
  Cgroup group;
  const auto add = [&group, &name](const std::string& root) {
    std::string dir = MakeGroup(root, name);
    if (!dir.empty()) group.dirs_.push_back(dir);
    return dir;
  };
  const std::string unified = add(roots.unified);
  if (!unified.empty()) SetUnifiedLimits(roots.unified, unified, limits);
  if (!roots.memory.empty() && limits.memory_bytes) {
    const std::string dir = add(roots.memory);
    WriteFile(dir + "/memory.limit_in_bytes", std::to_string(*limits.memory_bytes));
  }
  if (!roots.cpu.empty() && limits.cpu_millis) {
    const std::string dir = add(roots.cpu);
    WriteFile(dir + "/cpu.cfs_period_us", "100000");
    WriteFile(dir + "/cpu.cfs_quota_us", std::to_string(*limits.cpu_millis * 100));
  }
  if (!roots.pids.empty()) {
    const std::string dir = add(roots.pids);
    WriteFile(dir + "/pids.max", std::to_string(limits.pids));
  }
  if (unified.empty()) add(roots.freezer);
  return group;
}

std::vector<std::string> Cgroup::DirsOf(const CgroupRoots& roots, const std::string& name) {
  std::vector<std::string> dirs;
  for (const std::string& root :
       {roots.unified, roots.memory, roots.cpu, roots.pids, roots.freezer}) {
    if (!root.empty()) dirs.push_back(root + kParent + "/" + name);
  }
  return dirs;
}

Cgroup Cgroup::Adopt(std::vector<std::string> dirs) {
  Cgroup group;
  for (std::string& dir : dirs) {
    if (Exists(dir)) group.dirs_.push_back(std::move(dir));
  }
  return group;
}

bool Cgroup::IsUnified(const std::string& dir) const { return Exists(dir + "/cgroup.freeze"); }

std::string Cgroup::FreezeDir() const {
  for (const std::string& dir : dirs_) {
    if (IsUnified(dir) || Exists(dir + "/freezer.state")) return dir;
  }
  return "";
}

bool Cgroup::can_freeze() const { return !FreezeDir().empty(); }

bool Cgroup::Join(pid_t pid) const {
  return std::all_of(dirs_.begin(), dirs_.end(), [pid](const std::string& dir) {
    return WriteFile(dir + "/cgroup.procs", std::to_string(pid));
  });
}

absl::Status Cgroup::Freeze() {
  const std::string dir = FreezeDir();
  const bool unified = IsUnified(dir);
  const bool asked = unified ? WriteFile(dir + "/cgroup.freeze", "1")
                             : WriteFile(dir + "/freezer.state", "FROZEN");
  if (!asked) return absl::UnavailableError("the freezer does not take the request");
  const bool frozen = WaitFor(kFreezeTimeout, [&] {
    const std::string file = dir + (unified ? "/cgroup.events" : "/freezer.state");
    const std::string state = ReadFile(file).value_or("");
    return unified ? state.find("frozen 1") != std::string::npos : state.starts_with("FROZEN");
  });
  return frozen ? absl::OkStatus() : absl::DeadlineExceededError("the freezer takes too long");
}

absl::Status Cgroup::Thaw() {
  const std::string dir = FreezeDir();
  const bool asked = IsUnified(dir) ? WriteFile(dir + "/cgroup.freeze", "0")
                                    : WriteFile(dir + "/freezer.state", "THAWED");
  return asked ? absl::OkStatus() : absl::UnavailableError("the freezer does not take the request");
}

void Cgroup::Kill() {
  for (const std::string& dir : dirs_) {
    if (WriteFile(dir + "/cgroup.kill", "1")) continue;
    const std::string procs = ReadFile(dir + "/cgroup.procs").value_or("");
    const char* at = procs.c_str();
    char* end = nullptr;
    for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
      if (pid > 0) kill(static_cast<pid_t>(pid), SIGKILL);
      at = end;
    }
  }
  // The version-1 freezer holds even SIGKILL back.
  const std::string dir = FreezeDir();
  if (!dir.empty() && !IsUnified(dir)) WriteFile(dir + "/freezer.state", "THAWED");
}

bool Cgroup::Remove() {
  // A group stays busy for a moment after its last process has gone.
  for (const std::string& dir : std::exchange(dirs_, {})) {
    const bool gone =
        WaitFor(absl::Seconds(1), [&dir] { return rmdir(dir.c_str()) == 0 || errno == ENOENT; });
    if (!gone) dirs_.push_back(dir);
    rmdir(dir.substr(0, dir.rfind('/')).c_str());  // if it was the last
  }
  return dirs_.empty();
}

}  // namespace bridge::local::runtime
