// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/reclaimer.h — gives half-made sandboxes back, whatever became of the calls that
// wanted them: background tasks with a deadline of their own, counted, drained at shutdown. Loop
// thread only, but for the counters. The object outlives its tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/sandbox_remover.h"
#include "bridge/opensandbox/shared_result.h"

namespace bridge {

class Reclaimer {
 public:
  using Outcome = SharedResult<bool>;  // true: proven gone

  Reclaimer(EventLoop& loop, SandboxRemover& remover, TaskScope& tasks)
      : loop_(loop), remover_(remover), tasks_(tasks) {}
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Deletes the sandbox with the key and trace of `context`. `hold` lives until that is over.
  std::shared_ptr<Outcome> Start(const CallContext& context, std::string sandbox_id,
                                 std::shared_ptr<void> hold);

  // Any thread.
  int64_t reclaimed() const { return reclaimed_.load(std::memory_order_relaxed); }
  // Sandboxes that may still be there: somebody should look.
  int64_t leaked() const { return leaked_.load(std::memory_order_relaxed); }
  void CountLeak() { leaked_.fetch_add(1, std::memory_order_relaxed); }

 private:
  EventLoop& loop_;
  SandboxRemover& remover_;
  TaskScope& tasks_;
  std::atomic<int64_t> reclaimed_{0};
  std::atomic<int64_t> leaked_{0};
};

}  // namespace bridge
