// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/event_loop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>

namespace bridge {
namespace {

constexpr int kEventsPerTurn = 128;

thread_local const EventLoop* this_threads_loop = nullptr;

// gVisor and kernels before 5.11 have no epoll_pwait2: then a wait is rounded up to milliseconds,
// so that a timer never fires early.
int WaitForEvents(int epoll, epoll_event* events, absl::Duration wait) {
  static std::atomic<bool> has_nanoseconds{true};
  const bool for_ever = wait == absl::InfiniteDuration();
  if (has_nanoseconds.load(std::memory_order_relaxed)) {
    const timespec timeout = absl::ToTimespec(wait);
    const int n =
        epoll_pwait2(epoll, events, kEventsPerTurn, for_ever ? nullptr : &timeout, nullptr);
    if (n >= 0 || errno != ENOSYS) return n;
    has_nanoseconds.store(false, std::memory_order_relaxed);
  }
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  return epoll_wait(epoll, events, kEventsPerTurn,
                    for_ever ? -1 : static_cast<int>(std::min<int64_t>(ms, 3'600'000)));
}

}  // namespace

// An eventfd that outlives the loop as long as somebody (a fake clock) may still ring it.
class EventLoop::Wakeup {
 public:
  Wakeup() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (fd_ < 0) std::abort();  // out of descriptors at start-up
  }
  ~Wakeup() { ::close(fd_); }
  int fd() const { return fd_; }
  void Ring() const {
    const uint64_t one = 1;
    (void)!::write(fd_, &one, sizeof(one));
  }
  void Clear() const {
    uint64_t count;
    (void)!::read(fd_, &count, sizeof(count));
  }

 private:
  const int fd_;
};

// ---- Timer

void Timer::SetAt(absl::Duration when) {
  assert(loop_.OnLoop());
  Clear();
  if (when == absl::InfiniteDuration()) return;
  position_ = loop_.timers_.emplace(when, this);
  armed_ = true;
}

void Timer::Clear() {
  if (!std::exchange(armed_, false)) return;
  assert(loop_.OnLoop());
  loop_.timers_.erase(position_);
}

// ---- EventLoop

EventLoop::EventLoop(Clock& clock, std::string_view name)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(std::make_shared<Wakeup>()),
      turn_start_(clock.Monotonic()) {
  if (epoll_ < 0) std::abort();  // out of descriptors at start-up
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wakeup_->fd();
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_->fd(), &event);
  clock_.OnAdvance([wakeup = wakeup_] { wakeup->Ring(); });

  // Signals are the main thread's business; a loop thread inherits a full mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, thread_name = std::string(name)] { Run(thread_name); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

EventLoop::~EventLoop() {
  assert(!OnLoop());
  Post([this] { stop_ = true; });
  thread_.join();
  assert(sources_.empty());
  ::close(epoll_);
}

bool EventLoop::OnLoop() const { return this_threads_loop == this; }

void EventLoop::Post(Closure closure) {
  bool wake;
  {
    std::lock_guard lock(mu_);
    posted_.push_back(std::move(closure));
    wake = std::exchange(asleep_, false);
  }
  if (wake) wakeup_->Ring();
}

void EventLoop::RunAndWait(Closure closure) {
  if (OnLoop()) return closure.Run();
  std::mutex mu;
  std::condition_variable done;
  bool ran = false;
  Post([&] {
    closure.Run();
    std::lock_guard lock(mu);
    ran = true;
    done.notify_one();  // under the lock: the waiter's frame is gone right after it
  });
  std::unique_lock lock(mu);
  done.wait(lock, [&ran] { return ran; });
}

Task<bool> EventLoop::Sleep(absl::Duration duration) {
  Waiter fired;
  Timer timer(*this, [](void* waiter) { static_cast<Waiter*>(waiter)->Notify(true); }, &fired);
  timer.SetAt(Now() + duration);
  co_return co_await fired.Wait();
}

// A socket may be closed and its number used again without our knowing: curl 7.88.1 closes the
// sockets of a connection attempt that is aborted or lost the race by a plain close(), which takes
// them out of the epoll set. So the table alone does not tell whether the kernel knows `fd`.
void EventLoop::Watch(int fd, uint32_t events, FdHandler* handler) {
  assert(OnLoop() && handler != nullptr);
  if (static_cast<size_t>(fd) >= handlers_.size()) handlers_.resize(static_cast<size_t>(fd) + 1);
  FdHandler*& entry = handlers_[static_cast<size_t>(fd)];
  const bool known = std::exchange(entry, handler) != nullptr;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0) return;
  if (errno != ENOENT && errno != EEXIST) return;  // not a socket any more: its owner will notice
  epoll_ctl(epoll_, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::Unwatch(int fd, FdHandler* handler) {
  assert(OnLoop());
  if (static_cast<size_t>(fd) >= handlers_.size()) return;
  FdHandler*& entry = handlers_[static_cast<size_t>(fd)];
  if (entry != handler) return;
  entry = nullptr;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::AddSource(EventSource* source) {
  assert(OnLoop());
  sources_.push_back(source);
}

void EventLoop::RemoveSource(EventSource* source) {
  assert(OnLoop());
  sources_.erase(std::find(sources_.begin(), sources_.end(), source));
  std::replace(handlers_.begin(), handlers_.end(), static_cast<FdHandler*>(source),
               static_cast<FdHandler*>(nullptr));
}

void EventLoop::Run(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  this_threads_loop = this;
  while (!stop_) {
    PollFds(TimeToWait());
    RunPosted();
    RunTimers();
    for (size_t i = 0; i < sources_.size(); ++i) sources_[i]->OnTurnEnd();
  }
}

absl::Duration EventLoop::TimeToWait() {
  absl::Duration wait = absl::InfiniteDuration();
  if (!timers_.empty()) {
    const absl::Duration left = timers_.begin()->first - Now();
    if (left <= absl::ZeroDuration()) {
      wait = absl::ZeroDuration();
    } else if (clock_.passes()) {
      wait = left;
    }
  }
  for (const EventSource* source : sources_) {
    const absl::Duration deadline = source->NextDeadline();
    if (deadline == absl::InfiniteDuration()) continue;
    wait = std::min(wait, deadline - Clock::Real().Monotonic());
  }
  wait = std::max(wait, absl::ZeroDuration());
  std::lock_guard lock(mu_);
  if (!posted_.empty()) return absl::ZeroDuration();
  asleep_ = wait > absl::ZeroDuration();
  return wait;
}

void EventLoop::PollFds(absl::Duration wait) {
  epoll_event events[kEventsPerTurn];
  const int n = WaitForEvents(epoll_, events, wait);
  turn_start_ = Now();
  for (int i = 0; i < n; ++i) {
    const int fd = events[i].data.fd;
    if (fd == wakeup_->fd()) {
      wakeup_->Clear();
      continue;
    }
    FdHandler* handler = handlers_[static_cast<size_t>(fd)];
    if (handler != nullptr) {
      handler->OnFd(fd, events[i].events);
    } else {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);  // nobody's: it would keep us awake
    }
  }
}

void EventLoop::RunPosted() {
  {
    std::lock_guard lock(mu_);
    asleep_ = false;
    running_.swap(posted_);
  }
  for (Closure& closure : running_) closure.Run();
  running_.clear();
}

void EventLoop::RunTimers() {
  const absl::Duration now = Now();
  // Not those that a callback sets meanwhile for right now: they are the next turn's.
  std::multimap<absl::Duration, Timer*>::iterator it;
  for (int left = static_cast<int>(timers_.size()); left > 0; --left) {
    it = timers_.begin();
    if (it == timers_.end() || it->first > now) return;
    Timer* timer = it->second;
    timer->armed_ = false;
    timers_.erase(it);
    timer->fn_(timer->arg_);
  }
}

// ---- FdWatch

FdWatch::FdWatch(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {
  loop_.Watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, this);
}

FdWatch::~FdWatch() {
  loop_.Unwatch(fd_, this);
  if (gone_ != nullptr) *gone_ = true;
}

Task<bool> FdWatch::Readable() {
  bool ok = true;
  if (!readable_) ok = co_await reader_.Wait();
  if (ok) readable_ = false;
  co_return ok;
}

Task<bool> FdWatch::Writable() {
  bool ok = true;
  if (!writable_) ok = co_await writer_.Wait();
  if (ok) writable_ = false;
  co_return ok;
}

void FdWatch::OnFd(int, uint32_t events) {
  const uint32_t broken = EPOLLERR | EPOLLHUP;
  if ((events & (EPOLLIN | EPOLLRDHUP | broken)) != 0) readable_ = true;
  if ((events & (EPOLLOUT | broken)) != 0) writable_ = true;
  bool gone = false;
  gone_ = &gone;
  if (readable_) reader_.Notify(true);
  if (gone) return;
  gone_ = nullptr;
  if (writable_) writer_.Notify(true);
}

}  // namespace bridge
