// SPDX-License-Identifier: Apache-2.0
//
// net/task.h — the coroutine vocabulary of the bridge: Task, Waiter, CancelSource, Spawn, RunBoth.
//
// A task is lazy, owns its frame and runs on one event loop's thread from its first step to its
// last. Nothing throws: an exception that escapes a task ends the process. Locals clean up; a task
// that was started must run to its end before it is destroyed (asserted), which is what
// cancellation is for.
//
// Rules for everyone who writes a coroutine (why: docs/adr/0001-concurrency.md):
//  - co_await inside an if/while condition only with a local variable in the outermost block, and
//    never a value in braces in a statement that awaits, as in co_await f({.url = u}): g++ 12
//    miscompiles both silently (tests/lint finds them; docs/adr/0002-compiler.md);
//  - parameters by value, unless the caller provably outlives the task;
//  - a lambda coroutine's captures live in the lambda: keep it alive (Spawn and RunBoth do);
//  - Notify() and Cancel() resume a task inside the call, which may destroy you: last statement.
#pragma once

#include <cassert>
#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "bridge/net/waiter.h"

namespace bridge {

namespace internal {

// A child that ends without having suspended goes back to its awaiter by a plain return; one that
// did suspend resumes it from its final suspension. So a loop of awaits that are all ready needs no
// stack. (Pure symmetric transfer does wherever the compiler makes no tail call of it.)
struct PromiseBase {
  std::coroutine_handle<> next;    // who awaits this task
  CancelSource* cancel = nullptr;  // inherited from it
  bool started = false;
  bool suspended = false;  // the awaiter is suspended and wants to be resumed
  bool ended = false;

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      PromiseBase& promise = self.promise();
      promise.ended = true;
      return promise.suspended ? promise.next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  Final final_suspend() noexcept { return {}; }
  [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  template <class U = T>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T Take() { return *std::move(value); }
};

template <>
struct Promise<void> : PromiseBase {
  void return_void() noexcept {}
  void Take() noexcept {}
};

}  // namespace internal

// What a coroutine returns. It starts when it is awaited, once.
template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : internal::Promise<T> {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };

  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (!frame_) return;
    assert(!frame_.promise().started || frame_.promise().ended);
    frame_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  template <class Caller>
  bool await_suspend(std::coroutine_handle<Caller> caller) noexcept {
    promise_type& promise = frame_.promise();
    assert(!promise.started);
    promise.started = true;
    promise.next = caller;
    promise.cancel = caller.promise().cancel;
    frame_.resume();
    if (promise.ended) return false;
    promise.suspended = true;
    return true;
  }
  T await_resume() { return frame_.promise().Take(); }

 private:
  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

namespace internal {

struct Detached {
  struct promise_type {
    CancelSource* cancel;
    template <class Body, class Done>
    promise_type(CancelSource* source, Body&, Done&) : cancel(source) {}
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };
};

template <class Body, class Done>
Detached RunDetached([[maybe_unused]] CancelSource* source, Body body, Done done) {
  co_await body();
  done();
}

}  // namespace internal

// Starts `body`, a callable that returns Task<void>, at once on the calling loop thread. `done()`
// runs after the task's frame is gone; both callables live until done() has returned. `source` may
// be null (never cancelled) and must otherwise outlive the task.
template <class Body, class Done>
void Spawn(CancelSource* source, Body body, Done done) {
  internal::RunDetached(source, std::move(body), std::move(done));
}

// Runs two bodies side by side and returns when both have ended. As soon as one ends, or the caller
// is cancelled, the other one is cancelled. For relays: two pumps, the first to stop stops both.
template <class A, class B>
Task<void> RunBoth(A a, B b) {
  CancelSource stop_a;
  CancelSource stop_b;
  Waiter ended;
  int running = 2;
  auto done = [&running, &ended] {
    --running;
    ended.Notify(true);
  };
  Spawn(&stop_a, [&a] { return a(); }, done);
  Spawn(&stop_b, [&b] { return b(); }, done);
  if (running == 2) (void)co_await ended.Wait();
  stop_a.Cancel();
  stop_b.Cancel();
  while (running > 0) (void)co_await ended.WaitUncancellable();
}

}  // namespace bridge
