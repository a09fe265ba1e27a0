// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/task_scope.h"

#include <cstdio>
#include <cstdlib>

namespace bridge {

TaskScope::~TaskScope() {
  if (tasks_.empty()) return;
  std::fprintf(stderr, "TaskScope destroyed while \"%s\" runs\n", Names().front().c_str());
  std::abort();
}

std::vector<std::string> TaskScope::Names() const {
  std::vector<std::string> names;
  names.reserve(tasks_.size());
  for (const auto& [id, entry] : tasks_) names.push_back(entry->name);
  return names;
}

// Cancel() resumes tasks, which may end, start others, or end others: look each one up again.
void TaskScope::CancelAll() {
  cancelled_ = true;
  uint64_t next = 0;
  for (auto it = tasks_.lower_bound(next); it != tasks_.end(); it = tasks_.lower_bound(next)) {
    next = it->first + 1;
    it->second->stop.Cancel();
  }
}

void TaskScope::OnEnd(uint64_t id) {
  tasks_.erase(id);
  if (tasks_.empty()) idle_.Notify(true);
}

Task<void> TaskScope::Drain(EventLoop& loop, absl::Duration bound) {
  auto all_ended = [this]() -> Task<void> {
    bool waiting = true;
    while (waiting && running() > 0) waiting = co_await idle_.Wait();
  };
  (void)co_await RunWithin(loop, bound, all_ended);
  CancelAll();
  while (running() > 0) (void)co_await idle_.WaitUncancellable();
}

}  // namespace bridge
