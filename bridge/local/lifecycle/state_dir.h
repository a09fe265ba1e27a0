// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/state_dir.h — the directory in which one server keeps its sandboxes' records.
//
// One process owns it at a time (by a lock that the kernel drops with the process). Layout:
//   lock   sandboxes/ID/{record.json,log,status,disk}   volumes/NAME
// Any thread; the calls for one sandbox are the caller's to serialise.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/local/lifecycle/record.h"

namespace bridge::local::lifecycle {

class StateDir {
 public:
  // The directory is made if needed, with mode 0700. FAILED_PRECONDITION when another process holds
  // it, UNAVAILABLE when it cannot be written.
  static absl::StatusOr<std::unique_ptr<StateDir>> Open(const std::string& path);

  // A directory of its own below `parent`, removed again by the destructor. Those of processes that
  // are gone are given to `sweep` first, and then removed.
  template <class Sweep>
  static absl::StatusOr<std::unique_ptr<StateDir>> OpenTemporary(const std::string& parent,
                                                                 Sweep sweep);
  ~StateDir();

  const std::string& path() const { return path_; }
  std::string SandboxDir(const std::string& id) const { return path_ + "/sandboxes/" + id; }
  std::string VolumeDir(const std::string& name) const { return path_ + "/volumes/" + name; }

  absl::Status MakeSandboxDir(const std::string& id) const;
  // Replaces the record as a whole.
  absl::Status Save(const SandboxRecord& record) const;
  void Remove(const std::string& id) const;
  void RemoveVolumes(const std::vector<std::string>& names) const;
  // All readable records. *strays: ids of directories without one, whose sandbox was never
  // announced but may have been started.
  std::vector<SandboxRecord> Load(std::vector<std::string>* strays) const;

 private:
  StateDir(std::string path, int lock_fd, bool temporary)
      : path_(std::move(path)), lock_fd_(lock_fd), temporary_(temporary) {}

  static absl::StatusOr<std::string> MakeTemporary(const std::string& parent);
  static std::vector<std::unique_ptr<StateDir>> Abandoned(const std::string& parent);

  const std::string path_;
  const int lock_fd_;
  bool temporary_;
};

template <class Sweep>
absl::StatusOr<std::unique_ptr<StateDir>> StateDir::OpenTemporary(const std::string& parent,
                                                                  Sweep sweep) {
  for (const std::unique_ptr<StateDir>& dir : Abandoned(parent)) sweep(*dir);
  absl::StatusOr<std::string> path = MakeTemporary(parent);
  if (!path.ok()) return path.status();
  absl::StatusOr<std::unique_ptr<StateDir>> dir = Open(*path);
  if (dir.ok()) (*dir)->temporary_ = true;
  return dir;
}

// Where temporary ones go: $XDG_RUNTIME_DIR or /tmp, by user.
std::string DefaultStateParent();

}  // namespace bridge::local::lifecycle
