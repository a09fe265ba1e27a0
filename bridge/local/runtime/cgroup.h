// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/cgroup.h — a control group for one sandbox: limits, freezing, killing. Best effort:
// where no hierarchy can be written (no root, a read-only mount) there is none, and the sandbox
// lives without. Version 2 is preferred, because what is frozen there can still be killed; of
// version 1 the controllers are used, and the freezer only if there is no version 2.
//
// One thread at a time for each object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace bridge::local::runtime {

struct CgroupLimits {
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> cpu_millis;
  int64_t pids = 4096;
};

// The hierarchies of this machine that can be used; paths are directories to make groups in.
struct CgroupRoots {
  std::string unified;  // version 2
  std::string memory, cpu, pids, freezer;
  // `mount` is /sys/fs/cgroup; another one is for tests.
  static CgroupRoots Find(const std::string& mount = "/sys/fs/cgroup");
};

class Cgroup {
 public:
  // Makes the groups "local-opensandbox/<name>"; those that cannot be made are left out.
  static Cgroup Create(const CgroupRoots& roots, const std::string& name,
                       const CgroupLimits& limits);
  // Where groups of that name would be.
  static std::vector<std::string> DirsOf(const CgroupRoots& roots, const std::string& name);
  // Of a sandbox that was made earlier; those that do not exist are left out.
  static Cgroup Adopt(std::vector<std::string> dirs);

  // Directories whose cgroup.procs a process must join.
  const std::vector<std::string>& dirs() const { return dirs_; }
  bool can_freeze() const;
  // Moves a process in. False if it is not in all of them now.
  bool Join(pid_t pid) const;

  // Returns when everything inside is frozen; DEADLINE_EXCEEDED after some seconds.
  absl::Status Freeze();
  absl::Status Thaw();
  // Kills what is inside, also frozen.
  void Kill();
  // Removes the (then empty) groups. False if one stays.
  bool Remove();

 private:
  std::string FreezeDir() const;
  bool IsUnified(const std::string& dir) const;

  std::vector<std::string> dirs_;
};

}  // namespace bridge::local::runtime
