// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/caching_directory.h — the SandboxDirectory of one event loop.
//
// Concurrent resolves of one sandbox share one answer. What was found is kept, least recently used
// first out, and is a hint: after `trust` the next caller asks for the record again (one request),
// so that a sandbox that died and whose port was given away is noticed; while the server cannot be
// asked, what is known goes on being used. Hints are kept apart by the OpenSandbox key with which
// they were found: one caller's key opens nothing for another.
// Loop thread only. Resolving goes on in a task of the scope when its callers have left.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/daemon_finder.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/lifecycle_types.h"
#include "bridge/opensandbox/sandbox_directory.h"
#include "bridge/opensandbox/shared_result.h"

namespace bridge {

struct CachingDirectoryOptions {
  size_t capacity = 10'000;
  absl::Duration trust = absl::Seconds(30);
  // Of one resolve, all tries together.
  absl::Duration resolve_timeout = absl::Seconds(12);
};

class CachingDirectory final : public SandboxDirectory {
 public:
  // All of it outlives this, and `tasks` is drained before this goes.
  CachingDirectory(LifecycleClient& client, DaemonFinder& finder, TaskScope& tasks,
                   CachingDirectoryOptions options);
  ~CachingDirectory() override;

  Task<absl::StatusOr<std::shared_ptr<Daemon>>> Resolve(CallContext context, std::string sandbox_id,
                                                        std::string incarnation) override;
  Task<absl::Status> Explain(CallContext context, std::string sandbox_id,
                             absl::Status failure) override;
  void Forget(std::string_view sandbox_id) override;

  // What a create or resume just found.
  void Remember(const CallContext& context, const SandboxRecord& record, Endpoint endpoint);

  size_t size() const { return entries_.size(); }

 private:
  using Key = std::pair<std::string, std::string>;  // sandbox id, OpenSandbox key
  using Found = absl::StatusOr<std::shared_ptr<Daemon>>;
  using Shared = SharedResult<Found>;
  struct Entry {
    Key key;
    std::shared_ptr<Daemon> daemon;
    absl::Duration checked;  // when the record was last seen to be running
    std::optional<absl::Time> expires_at;
  };

  std::shared_ptr<Daemon> Fresh(const Key& key);
  // What is known of the sandbox, if the failure says nothing about it.
  std::shared_ptr<Daemon> KeepWithoutServer(const Key& key, const absl::Status& failure);
  std::shared_ptr<Shared> StartOrJoin(const CallContext& context, const Key& key);
  Task<Found> ResolveNow(CallContext context, Key key);
  Task<absl::StatusOr<Endpoint>> FindWithTries(const CallContext& context,
                                               const std::string& sandbox_id);
  std::shared_ptr<Daemon> Store(const Key& key, const SandboxRecord& record, Endpoint endpoint);
  void Drop(std::map<Key, std::list<Entry>::iterator>::iterator it);

  LifecycleClient& client_;
  DaemonFinder& finder_;
  TaskScope& tasks_;
  EventLoop& loop_;
  const CachingDirectoryOptions options_;
  std::list<Entry> entries_;  // most recently used first
  std::map<Key, std::list<Entry>::iterator> index_;
  std::map<Key, std::shared_ptr<Shared>> resolving_;
};

}  // namespace bridge
