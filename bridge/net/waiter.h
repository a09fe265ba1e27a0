// SPDX-License-Identifier: Apache-2.0
//
// net/waiter.h — where a task suspends, and how it is resumed or cancelled: Waiter, CancelSource.
//
// Part of the vocabulary of net/task.h; include that one. Notify() and Cancel() resume a task
// inside the call, which may destroy you: make them your last statement. The loop's thread only.
#pragma once

#include <cassert>
#include <coroutine>
#include <utility>

namespace bridge {

class Waiter;

// One signal for one task and the tasks that it awaits. Sticky: from Cancel() on every wait that
// may be abandoned yields false, the one in flight and all later ones. It remembers nothing else.
// Two tasks that wait at the same time need a source each.
class CancelSource {
 public:
  CancelSource() = default;
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;
  ~CancelSource() { assert(waiting_ == nullptr); }

  bool cancelled() const { return cancelled_; }
  void Cancel();  // loop thread; resumes the wait in flight inside the call

 private:
  friend class Waiter;
  bool cancelled_ = false;
  Waiter* waiting_ = nullptr;
};

// The one bridge from callbacks to coroutines. At most one task waits at a time (asserted), and a
// Notify() that finds nobody waiting is forgotten: keep the condition elsewhere and wait in a loop.
// Loop thread only; never Notify() from inside a library's callback (curl's, wslay's).
class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { assert(!waiting()); }

  class [[nodiscard]] Op {
   public:
    Op(Waiter& waiter, bool cancellable) : waiter_(waiter), cancellable_(cancellable) {}
    bool await_ready() const noexcept { return false; }
    template <class Caller>
    bool await_suspend(std::coroutine_handle<Caller> caller) noexcept {
      CancelSource* source = cancellable_ ? caller.promise().cancel : nullptr;
      cancelled_ = source != nullptr && source->cancelled();
      if (!cancelled_) waiter_.Suspend(caller, source);
      return !cancelled_;
    }
    bool await_resume() const noexcept { return !cancelled_ && waiter_.value_; }

   private:
    Waiter& waiter_;
    const bool cancellable_;
    bool cancelled_ = false;
  };

  // Suspends until Notify(v) and yields v; yields false when the task is or gets cancelled.
  Op Wait() { return Op(*this, true); }
  // For what must not be abandoned, because somebody else holds a pointer into our frame.
  Op WaitUncancellable() { return Op(*this, false); }

  bool waiting() const { return static_cast<bool>(task_); }

  // Resumes the waiting task inside the call. The caller's last statement.
  void Notify(bool value) {
    if (!task_) return;
    value_ = value;
    if (source_ != nullptr) std::exchange(source_, nullptr)->waiting_ = nullptr;
    std::exchange(task_, {}).resume();
  }

 private:
  void Suspend(std::coroutine_handle<> task, CancelSource* source) {
    assert(!task_);
    assert(source == nullptr || source->waiting_ == nullptr);
    task_ = task;
    source_ = source;
    if (source != nullptr) source->waiting_ = this;
  }

  std::coroutine_handle<> task_;
  CancelSource* source_ = nullptr;
  bool value_ = false;
};

inline void CancelSource::Cancel() {
  if (std::exchange(cancelled_, true)) return;
  if (waiting_ != nullptr) waiting_->Notify(false);
}

// `co_await Cancelled()`: was the running task cancelled? Never suspends.
class [[nodiscard]] Cancelled {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Caller>
  bool await_suspend(std::coroutine_handle<Caller> caller) noexcept {
    const CancelSource* source = caller.promise().cancel;
    cancelled_ = source != nullptr && source->cancelled();
    return false;
  }
  bool await_resume() const noexcept { return cancelled_; }

 private:
  bool cancelled_ = false;
};

}  // namespace bridge
