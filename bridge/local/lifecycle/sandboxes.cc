// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/sandboxes.h"

#include <algorithm>
#include <utility>

#include "bridge/base/read_file.h"
#include "bridge/local/api/rules.h"

namespace bridge::local::lifecycle {
namespace {

constexpr absl::Duration kKillTimeout = absl::Seconds(10);

using api::CodeFailure;
using api::SandboxNotFound;

}  // namespace

Sandboxes::Sandboxes(SandboxesOptions options, std::unique_ptr<StateDir> state)
    : options_(std::move(options)),
      state_(std::move(state)),
      cgroups_(runtime::CgroupRoots::Find()) {
  std::vector<std::string> strays;
  for (SandboxRecord& record : state_->Load(&strays)) AdoptOrRemove(std::move(record));
  for (const std::string& id : strays) {
    runtime::ReapById(cgroups_, id);
    state_->Remove(id);
  }
  // The clock may outlive us.
  options_.clock->OnAdvance([alarm = alarm_] { alarm->Ring(); });
  expirer_ = std::thread([this] { ExpireLoop(); });
}

Sandboxes::~Sandboxes() {
  alarm_->Stop();
  expirer_.join();
  std::vector<SandboxPtr> all;
  {
    const std::lock_guard lock(mu_);
    for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
  }
  if (options_.keep) {
    for (const SandboxPtr& sandbox : all) {
      const std::lock_guard lock(sandbox->mu);
      if (sandbox->process) watcher_.Forget(sandbox->process->keeper_fd());
    }
    return;
  }
  std::atomic<size_t> next{0};
  std::vector<std::thread> removers;
  for (size_t i = 0; i < std::min<size_t>(8, all.size()); ++i) {
    removers.emplace_back([&] {
      for (size_t at = next++; at < all.size(); at = next++) (void)Remove(all[at]);
    });
  }
  for (std::thread& remover : removers) remover.join();
}

void Sandboxes::AdoptOrRemove(SandboxRecord record) {
  auto sandbox = std::make_shared<Sandbox>();
  sandbox->id = record.id;
  if (options_.keep && !record.ended) {
    sandbox->process =
        runtime::SandboxProcess::Adopt(record.process, state_->SandboxDir(record.id));
    if (sandbox->process == nullptr) {
      // It ended while nobody looked; its status file may know how.
      runtime::ReapRecord(record.process, record.id);
      record.ended = runtime::ReadExit(state_->SandboxDir(record.id));
      record.paused = false;
    }
  }
  if (!options_.keep) {
    options_.log("removing sandbox " + record.id + " of an earlier run");
    if (!record.ended) runtime::ReapRecord(record.process, record.id);
    state_->RemoveVolumes(record.volumes_to_delete);
    state_->Remove(record.id);
    return;
  }
  options_.log("adopted sandbox " + record.id + (record.ended ? ", which has ended" : ""));
  sandbox->record = std::move(record);
  Save(*sandbox);
  Insert(sandbox);
}

void Sandboxes::Insert(const SandboxPtr& sandbox) {
  {
    const std::lock_guard lock(mu_);
    sandbox->number = ++inserted_;
    sandboxes_[sandbox->id] = sandbox;
  }
  alarm_->Ring();
  const std::lock_guard lock(sandbox->mu);
  if (sandbox->process == nullptr) return;
  watcher_.Watch(sandbox->process->keeper_fd(),
                 [this, weak = std::weak_ptr<Sandbox>(sandbox)] { OnEnd(weak); });
}

Sandboxes::SandboxPtr Sandboxes::Find(const std::string& id) const {
  const std::lock_guard lock(mu_);
  const auto it = sandboxes_.find(id);
  return it == sandboxes_.end() ? nullptr : it->second;
}

void Sandboxes::Save(Sandbox& sandbox) {
  const absl::Status saved = state_->Save(sandbox.record);
  if (!saved.ok()) options_.log("sandbox " + sandbox.id + ": " + std::string(saved.message()));
}

void Sandboxes::OnEnd(const std::weak_ptr<Sandbox>& weak) {
  const SandboxPtr sandbox = weak.lock();
  if (sandbox == nullptr) return;
  const std::lock_guard lock(sandbox->mu);
  NoteEnd(*sandbox);
  if (!sandbox->removing) Save(*sandbox);
}

void Sandboxes::NoteEnd(Sandbox& sandbox) {
  if (sandbox.process == nullptr) return;
  sandbox.record.ended = sandbox.process->TakeExit();
  sandbox.record.paused = false;
  sandbox.process->CleanUp();
  sandbox.process = nullptr;
}

std::optional<Failure> Sandboxes::Get(const std::string& id, SandboxRecord* record) const {
  const SandboxPtr sandbox = Find(id);
  if (sandbox == nullptr) return SandboxNotFound(id);
  const std::lock_guard lock(sandbox->mu);
  *record = sandbox->record;
  return std::nullopt;
}

std::vector<SandboxRecord> Sandboxes::List() const {
  std::vector<SandboxPtr> all;
  {
    const std::lock_guard lock(mu_);
    for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
  }
  std::vector<std::pair<uint64_t, SandboxRecord>> numbered;
  for (const SandboxPtr& sandbox : all) {
    const std::lock_guard lock(sandbox->mu);
    numbered.emplace_back(sandbox->number, sandbox->record);
  }
  std::sort(numbered.begin(), numbered.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.container_at, a.first) > std::pair(b.second.container_at, b.first);
  });
  std::vector<SandboxRecord> records;
  records.reserve(numbered.size());
  for (auto& [number, record] : numbered) records.push_back(std::move(record));
  return records;
}

absl::Status Sandboxes::Remove(const SandboxPtr& sandbox) {
  const std::lock_guard lock(sandbox->mu);
  if (sandbox->process != nullptr) {
    watcher_.Forget(sandbox->process->keeper_fd());
    if (absl::Status killed = sandbox->process->Kill(kKillTimeout); !killed.ok()) {
      watcher_.Watch(sandbox->process->keeper_fd(),
                     [this, weak = std::weak_ptr<Sandbox>(sandbox)] { OnEnd(weak); });
      return killed;
    }
    NoteEnd(*sandbox);
  }
  state_->RemoveVolumes(sandbox->record.volumes_to_delete);
  state_->Remove(sandbox->id);
  const std::lock_guard all(mu_);
  sandboxes_.erase(sandbox->id);
  return absl::OkStatus();
}

std::optional<Failure> Sandboxes::Delete(const std::string& id) {
  const SandboxPtr sandbox = Find(id);
  if (sandbox == nullptr) return SandboxNotFound(id);
  if (sandbox->removing.exchange(true)) {
    return CodeFailure(500, "DOCKER::SANDBOX_DELETE_FAILED",
                       "Failed to delete sandbox container: removal of container " + id +
                           " is already in progress");
  }
  const absl::Status removed = Remove(sandbox);
  if (removed.ok()) return std::nullopt;
  sandbox->removing = false;
  return CodeFailure(500, "DOCKER::SANDBOX_DELETE_FAILED",
                     "Failed to delete sandbox container: " + std::string(removed.message()));
}

std::optional<Failure> Sandboxes::Pause(const std::string& id) {
  const SandboxPtr sandbox = Find(id);
  if (sandbox == nullptr) return SandboxNotFound(id);
  const std::lock_guard lock(sandbox->mu);
  if (sandbox->record.paused || sandbox->process == nullptr || sandbox->process->ended()) {
    return CodeFailure(409, "DOCKER::SANDBOX_NOT_RUNNING", "Sandbox is not in a running state.");
  }
  if (absl::Status paused = sandbox->process->Pause(); !paused.ok()) {
    return CodeFailure(500, "DOCKER::SANDBOX_PAUSE_FAILED",
                       "Failed to pause sandbox container: " + std::string(paused.message()));
  }
  sandbox->record.paused = true;
  sandbox->record.process = sandbox->process->record();
  Save(*sandbox);
  return std::nullopt;
}

std::optional<Failure> Sandboxes::Resume(const std::string& id) {
  const SandboxPtr sandbox = Find(id);
  if (sandbox == nullptr) return SandboxNotFound(id);
  const std::lock_guard lock(sandbox->mu);
  if (!sandbox->record.paused || sandbox->process == nullptr) {
    return CodeFailure(409, "DOCKER::SANDBOX_NOT_PAUSED", "Sandbox is not in a paused state.");
  }
  if (absl::Status resumed = sandbox->process->Resume(); !resumed.ok()) {
    return CodeFailure(500, "DOCKER::SANDBOX_RESUME_FAILED",
                       "Failed to resume sandbox container: " + std::string(resumed.message()));
  }
  sandbox->record.paused = false;
  sandbox->record.process = sandbox->process->record();
  Save(*sandbox);
  return std::nullopt;
}

std::optional<Failure> Sandboxes::Renew(const std::string& id, absl::Time expires_at) {
  const SandboxPtr sandbox = Find(id);
  if (sandbox == nullptr) return SandboxNotFound(id);
  if (expires_at <= Now()) {
    return CodeFailure(400, "DOCKER::INVALID_EXPIRATION",
                       "New expiration time must be in the future.");
  }
  {
    const std::lock_guard lock(sandbox->mu);
    if (!sandbox->record.expires_at) {
      return CodeFailure(409, "DOCKER::INVALID_EXPIRATION",
                         "Sandbox " + id + " does not have automatic expiration enabled.");
    }
    sandbox->record.expires_at = expires_at;
    Save(*sandbox);
  }
  alarm_->Ring();
  return std::nullopt;
}

std::optional<Failure> Sandboxes::PatchMetadata(
    const std::string& id, const std::map<std::string, std::optional<std::string>>& patch,
    SandboxRecord* record) {
  const SandboxPtr sandbox = Find(id);
  if (sandbox == nullptr) return SandboxNotFound(id);
  std::map<std::string, std::string> changes;
  for (const auto& [key, value] : patch) {
    if (key.starts_with(api::kReservedPrefix)) {
      return CodeFailure(400, "INVALID_METADATA_LABEL",
                         "Metadata key '" + key + "' is reserved (opensandbox.io/ prefix).");
    }
    changes[key] = value.value_or("");
  }
  if (auto failure = api::CheckLabels(changes)) return failure;
  const std::lock_guard lock(sandbox->mu);
  for (const auto& [key, value] : patch) {
    if (value) {
      sandbox->record.metadata[key] = *value;
    } else {
      sandbox->record.metadata.erase(key);
    }
  }
  Save(*sandbox);
  *record = sandbox->record;
  return std::nullopt;
}

std::string Sandboxes::ReadLog(const std::string& id) const {
  return ReadFile(state_->SandboxDir(id) + "/log").value_or("");
}

std::vector<Sandboxes::SandboxPtr> Sandboxes::Expired(std::optional<absl::Time>* next) {
  std::vector<SandboxPtr> expired;
  std::vector<SandboxPtr> all;
  {
    const std::lock_guard lock(mu_);
    for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
  }
  const absl::Time now = Now();
  for (const SandboxPtr& sandbox : all) {
    const std::lock_guard lock(sandbox->mu);
    const std::optional<absl::Time>& at = sandbox->record.expires_at;
    if (!at || sandbox->removing) continue;
    if (*at <= now) {
      expired.push_back(sandbox);
    } else if (!*next || *at < **next) {
      *next = *at;
    }
  }
  return expired;
}

void Sandboxes::ExpireLoop() {
  uint64_t seen = 0;
  std::optional<absl::Time> next;
  do {
    next.reset();
    seen = alarm_->rings();
    for (const SandboxPtr& sandbox : Expired(&next)) {
      if (sandbox->removing.exchange(true)) continue;
      options_.log("sandbox " + sandbox->id + " has expired");
      if (Remove(sandbox).ok()) continue;
      sandbox->removing = false;
      next = Now() + absl::Seconds(1);  // try again soon
    }
    if (!options_.clock->passes()) next.reset();
  } while (alarm_->Wait(seen, next ? *next - Now() : absl::InfiniteDuration()));
}

void SweepStateDir(const StateDir& state) {
  std::vector<std::string> strays;
  for (const SandboxRecord& record : state.Load(&strays)) {
    if (!record.ended) runtime::ReapRecord(record.process, record.id);
  }
  const runtime::CgroupRoots roots = runtime::CgroupRoots::Find();
  for (const std::string& id : strays) runtime::ReapById(roots, id);
}

}  // namespace bridge::local::lifecycle
