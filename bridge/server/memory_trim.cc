// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/memory_trim.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>

namespace bridge {

MemoryTrim::MemoryTrim(absl::Duration period, size_t worth) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the main thread's business
  thread_ = std::thread([this, period, worth] { Run(period, worth); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

MemoryTrim::~MemoryTrim() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void MemoryTrim::Run(absl::Duration period, size_t worth) {
  pthread_setname_np(pthread_self(), "memory_trim");
  size_t kept = 0;  // free, but not to be had back: between what is in use
  std::unique_lock lock(mu_);
  while (!changed_.wait_for(lock, absl::ToChronoNanoseconds(period), [this] { return stop_; })) {
    lock.unlock();
    const size_t free = mallinfo2().fordblks;
    if (free < kept) kept = free;
    if (free - kept >= worth) {
      malloc_trim(0);
      kept = mallinfo2().fordblks;
    }
    lock.lock();
  }
}

}  // namespace bridge
