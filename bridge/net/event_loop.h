// SPDX-License-Identifier: Apache-2.0
//
// net/event_loop.h — one thread that runs tasks, timers and sockets (epoll).
//
// Everything that belongs to a loop is touched on its thread only; the other threads may call
// nothing but Post(), RunAndWait(), OnLoop() and Now(). There is no lock in the data path but the
// mailbox's. Time is the clock's: on a FakeClock the timers follow Advance() and never real time.
// Knows nothing of curl or gRPC.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bridge/base/clock.h"
#include "bridge/net/closure.h"
#include "bridge/net/task.h"

namespace bridge {

class EventLoop;

// Readiness of a descriptor, in epoll's bits. May come for nothing; may destroy its receiver.
class FdHandler {
 public:
  virtual void OnFd(int fd, uint32_t events) = 0;

 protected:
  ~FdHandler() = default;
};

// A library with sockets and timers of its own (curl) that the loop drives.
class EventSource : public FdHandler {
 public:
  // The last step of every turn of the loop. Tasks are resumed here, not in OnFd.
  virtual void OnTurnEnd() = 0;
  // When OnTurnEnd wants to run next at the latest, in Clock::Real().Monotonic(), whatever clock
  // the loop has. Infinite: only when something happens.
  virtual absl::Duration NextDeadline() const = 0;

 protected:
  ~EventSource() = default;
};

// Calls fn(arg) on the loop thread when its time comes. Loop thread only. The destructor disarms;
// fn may destroy the timer.
class Timer {
 public:
  using Callback = void (*)(void* arg);
  Timer(EventLoop& loop, Callback fn, void* arg) : loop_(loop), fn_(fn), arg_(arg) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Clear(); }

  void SetAt(absl::Duration when);  // in the loop's Now(); infinite disarms; replaces
  void Clear();
  bool armed() const { return armed_; }

 private:
  friend class EventLoop;
  EventLoop& loop_;
  const Callback fn_;
  void* const arg_;
  bool armed_ = false;
  std::multimap<absl::Duration, Timer*>::iterator position_;
};

class EventLoop {
 public:
  // `name` is the thread's, at most 15 bytes. The clock must outlive the loop.
  explicit EventLoop(Clock& clock = Clock::Real(), std::string_view name = "loop");
  // Off the loop thread, after every task has ended and every source is gone. Runs what was posted
  // before it, then joins the thread.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // --- Any thread.

  // Runs `closure` on the loop thread, in the order of the calls, never inside this call.
  void Post(Closure closure);
  // Runs it there and returns when it has run; on the loop thread itself, at once.
  void RunAndWait(Closure closure);
  bool OnLoop() const;
  absl::Duration Now() const { return clock_.Monotonic(); }
  Clock& clock() const { return clock_; }

  // --- Loop thread only.

  // Suspends for `duration`; false when the task is cancelled. Zero lets one turn pass.
  Task<bool> Sleep(absl::Duration duration);

  class [[nodiscard]] YieldOp {
   public:
    explicit YieldOp(EventLoop& loop) : loop_(loop) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> task) {
      loop_.Post([task] { task.resume(); });
    }
    void await_resume() const noexcept {}

   private:
    EventLoop& loop_;
  };
  // `co_await loop.Yield()`: everything that is ready now runs first. A cheap way to batch more.
  YieldOp Yield() { return YieldOp(*this); }

  // Now() as of the start of this turn: free, and exact enough for idle times.
  absl::Duration TurnStart() const { return turn_start_; }

  // Wants epoll's `events` of `fd` for `handler`, level-triggered unless EPOLLET is among them.
  // Calling it again replaces both; a descriptor that was closed and opened again in between, with
  // or without the loop knowing, is fine.
  void Watch(int fd, uint32_t events, FdHandler* handler);
  // Nothing happens when `fd` belongs to another handler by now, or to none.
  void Unwatch(int fd, FdHandler* handler);

  void AddSource(EventSource* source);
  void RemoveSource(EventSource* source);

 private:
  friend class Timer;
  class Wakeup;

  void Run(const std::string& name);
  absl::Duration TimeToWait();
  void PollFds(absl::Duration wait);
  void RunPosted();
  void RunTimers();

  Clock& clock_;
  const int epoll_;
  const std::shared_ptr<Wakeup> wakeup_;  // the clock keeps the other reference
  absl::Duration turn_start_;
  bool stop_ = false;
  std::multimap<absl::Duration, Timer*> timers_;
  std::vector<FdHandler*> handlers_;  // by descriptor
  std::vector<EventSource*> sources_;
  std::vector<Closure> running_;

  std::mutex mu_;
  std::vector<Closure> posted_;  // guarded by mu_
  bool asleep_ = false;          // guarded by mu_: Post() must wake the thread

  std::thread thread_;  // last: starts when all else is there
};

// Readiness of one non-blocking socket for tasks. Edge-triggered: wait only after the socket said
// EAGAIN. One task may wait for each direction. Does not own the descriptor and must be destroyed
// before it is closed. Loop thread only.
class FdWatch final : private FdHandler {
 public:
  FdWatch(EventLoop& loop, int fd);
  ~FdWatch();
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;

  Task<bool> Readable();  // false: cancelled
  Task<bool> Writable();

 private:
  void OnFd(int fd, uint32_t events) override;

  EventLoop& loop_;
  const int fd_;
  bool readable_ = false;
  bool writable_ = false;
  bool* gone_ = nullptr;  // set while OnFd runs: tells it that a resumed task destroyed this
  Waiter reader_;
  Waiter writer_;
};

// Runs `body` for at most `bound`. True: it ended by itself. False: time was up, or the caller was
// cancelled (see Cancelled()); then the body was cancelled and has ended.
template <class Body>
Task<bool> RunWithin(EventLoop& loop, absl::Duration bound, Body body) {
  bool ended = false;
  bool late = false;
  auto work = [&]() -> Task<void> {
    co_await body();
    const bool cancelled = co_await Cancelled();
    ended = !late && !cancelled;
  };
  auto alarm = [&]() -> Task<void> { late = co_await loop.Sleep(bound); };
  co_await RunBoth(work, alarm);
  co_return ended;
}

}  // namespace bridge
