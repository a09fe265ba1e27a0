// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/periodic_thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace bridge {

PeriodicThread::PeriodicThread(const char* name, absl::Duration period,
                               std::function<void()> turn) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, name, period, turn = std::move(turn)] {
    pthread_setname_np(pthread_self(), name);
    std::unique_lock lock(mu_);
    while (!changed_.wait_for(lock, absl::ToChronoNanoseconds(period), [this] { return stop_; })) {
      lock.unlock();
      turn();
      lock.lock();
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PeriodicThread::~PeriodicThread() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace bridge
