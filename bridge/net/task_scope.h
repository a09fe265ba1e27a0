// SPDX-License-Identifier: Apache-2.0
//
// net/task_scope.h — owner of background tasks: work that outlives the call that wanted it, such as
// killing a remote command or deleting a half-made sandbox.
//
// Such a task has its own cancel signal and its own deadline, is counted, and is awaited at
// shutdown. All calls on one loop's thread. The scope must outlive its tasks: Drain() it first
// (its destructor ends the process otherwise, because the tasks would use freed memory).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"

namespace bridge {

class TaskScope {
 public:
  TaskScope() = default;
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope();

  // Starts `body`, a callable that returns Task<void>, at once. `name` is for people ("kill
  // command"): no ids, no secrets. After CancelAll() a new task starts as a cancelled one.
  template <class Body>
  void Start(std::string_view name, Body body) {
    const uint64_t id = next_id_++;
    auto entry = std::make_unique<Entry>(std::string(name));
    CancelSource* stop = &entry->stop;
    if (cancelled_) stop->Cancel();
    tasks_.emplace(id, std::move(entry));
    Spawn(stop, std::move(body), [this, id] { OnEnd(id); });
  }

  int running() const { return static_cast<int>(tasks_.size()); }
  std::vector<std::string> Names() const;  // of the running tasks, oldest first

  // Cancels every task, and every one started later. A cancelled task ends soon, not at once.
  void CancelAll();

  // Waits up to `bound` for the tasks to end by themselves, cancels the rest and waits for those.
  // When it returns nothing runs. If the caller is cancelled the bound is over at once.
  Task<void> Drain(EventLoop& loop, absl::Duration bound);

 private:
  struct Entry {
    explicit Entry(std::string n) : name(std::move(n)) {}
    std::string name;
    CancelSource stop;
  };

  void OnEnd(uint64_t id);

  std::map<uint64_t, std::unique_ptr<Entry>> tasks_;  // by age
  uint64_t next_id_ = 0;
  bool cancelled_ = false;
  Waiter idle_;  // Drain() waits here for the last task
};

}  // namespace bridge
