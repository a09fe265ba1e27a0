// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/run_task.h — runs a coroutine on an event loop and waits for it, from a test's
// thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"

namespace bridge {

// A flag that one thread raises and another one waits for. A test that waits in vain for a minute
// ends the process: there is nothing sensible to go on with.
class Signal {
 public:
  void Raise() {
    std::lock_guard lock(mu_);
    raised_ = true;
    changed_.notify_all();
  }
  void Await() {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [this] { return raised_; })) {
      std::fprintf(stderr, "a test waited a minute for something that did not happen\n");
      std::abort();
    }
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool raised_ = false;
};

// Starts `body()`, a Task<T>, on the loop and returns its value when it has ended.
template <class Body>
auto RunTask(EventLoop& loop, Body body, CancelSource* cancel = nullptr) {
  using T = decltype(std::declval<decltype(body())>().await_resume());
  Signal ended;
  if constexpr (std::is_void_v<T>) {
    loop.Post([&] { Spawn(cancel, [&body] { return body(); }, [&ended] { ended.Raise(); }); });
    ended.Await();
  } else {
    std::optional<T> value;
    loop.Post([&] {
      auto store = [&body, &value]() -> Task<void> { value.emplace(co_await body()); };
      Spawn(cancel, store, [&ended] { ended.Raise(); });
    });
    ended.Await();
    return *std::move(value);
  }
}

}  // namespace bridge
