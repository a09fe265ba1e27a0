// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/interrupts.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace bridge::cli {
namespace {

// SIGUSR2 ends the watching thread; it is blocked everywhere and sent to that thread alone.
constexpr int kEndOfWatch = SIGUSR2;

bool IsIgnored(int signal) {
  struct sigaction now = {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kEndOfWatch);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!IsIgnored(signal)) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

Interrupts::Interrupts(std::function<void(int)> at_once) : at_once_(std::move(at_once)) {}

Interrupts::~Interrupts() {
  if (!watcher_.joinable()) return;
  pthread_kill(watcher_.native_handle(), kEndOfWatch);
  watcher_.join();
}

void Interrupts::Watch() {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this, set] { Run(set); });
}

void Interrupts::Run(const sigset_t& watched) {
  for (;;) {
    int signal = 0;
    if (sigwait(&watched, &signal) != 0) continue;
    if (signal == kEndOfWatch) return;
    Deliver(signal);
  }
}

void Interrupts::Deliver(int signal) {
  const std::lock_guard lock(mu_);
  const bool is_first = first_ == 0;
  if (is_first) first_ = signal;
  if (is_first && action_) {
    action_(signal);
    return;
  }
  if (cleanup_) cleanup_();
  at_once_(128 + signal);
}

int Interrupts::first() const {
  const std::lock_guard lock(mu_);
  return first_;
}

void Interrupts::OnEnd(std::function<void()> cleanup) {
  const std::lock_guard lock(mu_);
  cleanup_ = std::move(cleanup);
}

Interrupts::Scope::Scope(Interrupts& interrupts, Action action) : interrupts_(interrupts) {
  const std::lock_guard lock(interrupts.mu_);
  outer_ = std::exchange(interrupts.action_, std::move(action));
}

Interrupts::Scope::~Scope() {
  const std::lock_guard lock(interrupts_.mu_);
  interrupts_.action_ = std::move(outer_);
}

}  // namespace bridge::cli
