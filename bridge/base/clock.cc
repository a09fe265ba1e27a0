// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/clock.h"

#include <chrono>
#include <utility>

namespace bridge {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  absl::Duration Monotonic() override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

Clock& Clock::Real() {
  static auto* clock = new RealClock;
  return *clock;
}

absl::Time FakeClock::Now() {
  std::lock_guard lock(mu_);
  return start_ + elapsed_;
}

absl::Duration FakeClock::Monotonic() {
  std::lock_guard lock(mu_);
  return elapsed_;
}

void FakeClock::OnAdvance(std::function<void()> wake) {
  std::lock_guard lock(mu_);
  wakes_.push_back(std::move(wake));
}

void FakeClock::Advance(absl::Duration d) {
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard lock(mu_);
    elapsed_ += d;
    wakes = wakes_;
  }
  for (const auto& wake : wakes) wake();
}

}  // namespace bridge
