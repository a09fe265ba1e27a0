// SPDX-License-Identifier: Apache-2.0
//
// cli/interrupts.h — SIGINT, SIGTERM and SIGHUP as calls on a thread of their own.
//
// The first signal asks the running command to end in order, a second one ends the program at once;
// without a Scope already the first does. One that was ignored when sbx was started (by nohup, or
// by a shell for what it runs in the background) stays ignored. Made first in main(), before any
// other thread, because threads inherit the blocked signals. Everything here may be called on any
// thread.
#pragma once

#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace bridge::cli {

class Interrupts {
 public:
  using Action = std::function<void(int signal)>;

  // `at_once` ends the program: called with 128 + signal, must not return in production.
  explicit Interrupts(std::function<void(int exit_code)> at_once);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Blocks the signals in this thread and its children and starts watching them.
  void Watch();

  // What a signal does, as if it had arrived. For the watching thread and for tests.
  void Deliver(int signal);

  // The first signal so far, 0 when there was none.
  int first() const;

  // While it lives, the first signal calls `action` on the watching thread; it must not block. When
  // the destructor returns the action is not running and will not run. Scopes nest: the inner hides
  // the outer.
  class Scope {
   public:
    Scope(Interrupts& interrupts, Action action);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interrupts& interrupts_;
    Action outer_;
  };

  // Called before the program ends at once: puts a terminal back. Empty: nothing.
  void OnEnd(std::function<void()> cleanup);

 private:
  void Run(const sigset_t& watched);

  const std::function<void(int)> at_once_;
  mutable std::mutex mu_;
  Action action_;
  std::function<void()> cleanup_;
  int first_ = 0;
  std::thread watcher_;
};

}  // namespace bridge::cli
