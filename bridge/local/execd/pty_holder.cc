// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/pty_holder.h"

#include "absl/time/clock.h"

namespace bridge::local::execd {
namespace {

constexpr uint16_t kTakenOver = 4001;
// How often, every 10 ms, a client that has not taken what was sent to it is looked at.
constexpr int kLooks = 20;

}  // namespace

void PtyHolder::Deliver(std::string_view frame) {
  // In this order: Displace() sets the one before it looks at the other.
  writing_ = true;
  if (!displaced_) (void)socket_.WriteBinary(frame);
  writing_ = false;
}

// A client that does not read gets no close frame: a write to it may be stuck, and a frame cannot
// pass it.
void PtyHolder::Displace() {
  if (displaced_.exchange(true)) return;
  for (int i = 0; i < kLooks && writing_; ++i) absl::SleepFor(absl::Milliseconds(10));
  {
    const std::lock_guard lock(mu_);
    if (!gone_ && writing_) {
      socket_.socket().Shutdown();
    } else if (!gone_) {
      (void)socket_.Close(kTakenOver, "TAKEN_OVER");  // the answer ends the holder's thread
    }
  }
  told_.Notify();
}

void PtyHolder::StopListening() {
  const std::lock_guard lock(mu_);
  if (!gone_) socket_.socket().ShutdownRead();
}

void PtyHolder::AwaitDisplaced() {
  if (displaced_) told_.WaitForNotification();
}

void PtyHolder::Leave() {
  const std::lock_guard lock(mu_);
  gone_ = true;
}

}  // namespace bridge::local::execd
