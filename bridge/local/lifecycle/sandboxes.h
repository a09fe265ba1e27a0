// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/sandboxes.h — all sandboxes of one server: making, watching, expiring, removing.
//
// Any thread may call anything. Calls for one sandbox wait for each other, except that a second
// Delete is refused while the first is at work, as the real server does.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/base/clock.h"
#include "bridge/local/api/create_request.h"
#include "bridge/local/lifecycle/alarm.h"
#include "bridge/local/lifecycle/record.h"
#include "bridge/local/lifecycle/state_dir.h"
#include "bridge/local/lifecycle/storage.h"
#include "bridge/local/lifecycle/watcher.h"

namespace bridge::local::lifecycle {

using api::Failure;

struct SandboxesOptions {
  runtime::Isolation isolation = runtime::Isolation::kOverlay;
  std::string execd;  // programs of the host
  std::string bootstrap;
  std::string compat = "current";  // execd's --compat
  std::string host = "127.0.0.1";  // where execd listens
  StorageOptions storage;
  api::CreateLimits limits;
  long long disk_bytes = 4LL << 30;  // of each sandbox's writable root; memory, used as needed
  // Sandboxes outlive this object, and the next one with the same state directory adopts them.
  bool keep = false;
  Clock* clock = &Clock::Real();
  std::function<void(std::string_view)> log = [](std::string_view) {};
};

class Sandboxes {
 public:
  // Adopts what `state` has, or removes it.
  Sandboxes(SandboxesOptions options, std::unique_ptr<StateDir> state);
  // Ends all sandboxes, unless they are kept.
  ~Sandboxes();

  const SandboxesOptions& options() const { return options_; }
  absl::Time Now() const { return options_.clock->Now(); }

  std::optional<Failure> Create(const api::CreateRequest& request, SandboxRecord* created);
  std::optional<Failure> Get(const std::string& id, SandboxRecord* record) const;
  // Newest first.
  std::vector<SandboxRecord> List() const;
  std::optional<Failure> Delete(const std::string& id);
  std::optional<Failure> Pause(const std::string& id);
  std::optional<Failure> Resume(const std::string& id);
  std::optional<Failure> Renew(const std::string& id, absl::Time expires_at);
  // A null value removes the key.
  std::optional<Failure> PatchMetadata(
      const std::string& id, const std::map<std::string, std::optional<std::string>>& patch,
      SandboxRecord* record);
  // The log so far.
  std::string ReadLog(const std::string& id) const;

 private:
  struct Sandbox {
    std::string id;
    uint64_t number = 0;  // in the order of insertion, for those of the same moment
    std::atomic<bool> removing{false};
    std::mutex mu;  // guards what follows
    SandboxRecord record;
    std::unique_ptr<runtime::SandboxProcess> process;  // null once it has ended
  };
  using SandboxPtr = std::shared_ptr<Sandbox>;

  SandboxPtr Find(const std::string& id) const;
  SandboxRecord NewRecord(const api::CreateRequest& request) const;
  std::optional<Failure> Start(const VolumePlan& volumes, SandboxRecord* record, Sandbox* sandbox);
  void Insert(const SandboxPtr& sandbox);
  void AdoptOrRemove(SandboxRecord record);
  void OnEnd(const std::weak_ptr<Sandbox>& weak);
  // Under sandbox.mu.
  void NoteEnd(Sandbox& sandbox);
  void Save(Sandbox& sandbox);
  absl::Status Remove(const SandboxPtr& sandbox);
  void ExpireLoop();
  std::vector<SandboxPtr> Expired(std::optional<absl::Time>* next);

  const SandboxesOptions options_;
  const std::unique_ptr<StateDir> state_;
  const runtime::CgroupRoots cgroups_;
  runtime::Spawner spawner_;
  Watcher watcher_;

  // May be taken while a Sandbox::mu is held, never the other way round.
  mutable std::mutex mu_;
  std::map<std::string, SandboxPtr> sandboxes_;
  uint64_t inserted_ = 0;
  const std::shared_ptr<Alarm> alarm_ = std::make_shared<Alarm>();
  std::thread expirer_;
};

// Removes what a process that is gone has left in its state directory.
void SweepStateDir(const StateDir& state);

}  // namespace bridge::local::lifecycle
