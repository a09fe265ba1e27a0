// SPDX-License-Identifier: Apache-2.0
//
// The smallest program that g++ 12.2 miscompiles in both ways that gcc_coroutines.py looks for.
// With clang 19 and with -DCURED it prints "got 1" whichever PATTERN it is built with; with
// g++ 12.2 and without -DCURED it prints nothing, or crashes, at every -O level.
//   PATTERN 1  a co_await in a condition and no local variable in the outermost block
//   PATTERN 2  an aggregate in braces and a co_await in one statement
// The story: docs/adr/0002-compiler.md.
#include <coroutine>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

class Task {
 public:
  struct promise_type {
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        std::coroutine_handle<> next = self.promise().next;
        return next ? next : std::noop_coroutine();
      }
      void await_resume() noexcept {}
    };
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    Final final_suspend() noexcept { return {}; }
    void return_value(bool v) { value = v; }
    void unhandled_exception() { std::terminate(); }

    std::coroutine_handle<> next;
    bool value = false;
  };

  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  ~Task() {
    if (frame_) frame_.destroy();
  }
  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) {
    frame_.promise().next = caller;
    return frame_;
  }
  bool await_resume() { return frame_.promise().value; }
  void Start() { frame_.resume(); }

 private:
  std::coroutine_handle<promise_type> frame_;
};

Task Ready() { co_return true; }

#if PATTERN == 1

Task Victim() {
#ifdef CURED
  [[maybe_unused]] int cure = 0;
#endif
  if (co_await Ready()) co_return true;
  co_return false;
}

#else

struct Request {
  std::string method = "GET";
  std::string url = {};
};

Task Fetch(Request request) {
  bool ready = co_await Ready();
  co_return ready&& request.method == "GET" && request.url == "u";
}

Task Victim() {
#ifdef CURED
  Request request{.url = "u"};
  bool result = co_await Fetch(request);
#else
  bool result = co_await Fetch({.url = "u"});
#endif
  co_return result;
}

#endif

Task Top() {
  bool result = co_await Victim();
  std::printf("got %d\n", result);
  std::fflush(stdout);
  co_return result;
}

int main() {
  Task top = Top();
  top.Start();
}
