// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/sandbox_process.h — the processes of one sandbox: starting, freezing, killing,
// adopting.
//
// The *keeper* is our child: bwrap outside of the sandbox (or, without isolation, the bootstrap
// itself). When it has ended nothing of the sandbox is left. The *init* is the bootstrap inside.
// One thread at a time for each object, except WaitEnd(), ended() and keeper_fd().
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/local/runtime/bootstrap_protocol.h"
#include "bridge/local/runtime/cgroup.h"
#include "bridge/local/runtime/isolation.h"
#include "bridge/local/runtime/process.h"
#include "bridge/local/runtime/spawner.h"

namespace bridge::local::runtime {

struct LaunchRequest {
  std::string id;
  std::string dir;  // of the sandbox, exists: "log", "status" and "disk" are made in it
  RootPlan root;
  BootstrapSpec spec;
  CgroupLimits limits;
  int listen_fd = -1;  // execd's socket; stays the caller's
};

// What must be remembered to find a sandbox's processes again.
struct ProcessRecord {
  Isolation isolation = Isolation::kOverlay;
  pid_t keeper = 0;
  uint64_t keeper_start = 0;
  pid_t init = 0;
  uint64_t init_start = 0;
  std::vector<std::string> cgroups;
  std::vector<int> stopped;  // paused without a freezer: whom to continue
};

class SandboxProcess {
 public:
  // Returns when the bootstrap inside runs, or with the reason why it does not:
  // RESOURCE_EXHAUSTED when the command line is too long, else UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<SandboxProcess>> Launch(Spawner& spawner,
                                                                const CgroupRoots& roots,
                                                                LaunchRequest request);
  // The processes of a record, if they still live.
  static std::unique_ptr<SandboxProcess> Adopt(const ProcessRecord& record, const std::string& dir);

  const ProcessRecord& record() const { return record_; }
  int keeper_fd() const { return keeper_.fd(); }
  bool ended() const { return keeper_.ended(); }

  // After the end: how. Reaps the keeper if it is our child.
  ExitStatus TakeExit();

  absl::Status Pause();
  absl::Status Resume();
  // Kills everything and waits until it is gone.
  absl::Status Kill(absl::Duration timeout);
  // Removes what is left of an ended sandbox outside of its directory.
  void CleanUp();

 private:
  SandboxProcess() = default;
  void KillUnwalled(absl::Time deadline);

  ProcessRecord record_;
  ProcessHandle keeper_;
  ProcessHandle init_;
  Cgroup cgroup_;
  std::string dir_;
};

// Kills and cleans up after a record whose server is gone; nothing may be left of it.
void ReapRecord(const ProcessRecord& record, const std::string& id);

// The same for one of which nothing but the id is known.
void ReapById(const CgroupRoots& roots, const std::string& id);

// How a sandbox whose keeper has gone ended, as far as its directory knows.
ExitStatus ReadExit(const std::string& dir);

// Can this machine do it? The reason why not otherwise. Starts a short-lived sandbox.
absl::Status ProbeIsolation(Isolation isolation, const std::string& bootstrap,
                            const std::string& scratch_dir);

}  // namespace bridge::local::runtime
