// SPDX-License-Identifier: Apache-2.0
//
// server/signals.h — signals as something that the main thread waits for. No handler ever runs.
#pragma once

#include <signal.h>

#include "absl/time/time.h"

namespace bridge {

class Signals {
 public:
  // First thing in main(), before any thread: threads inherit what is blocked. A signal that comes
  // while the program starts is kept until Wait(). SIGPIPE is ignored for good.
  Signals();

  // SIGTERM, SIGINT, SIGHUP, SIGUSR1, or 0 when none came within `bound`. Main thread.
  int Wait(absl::Duration bound = absl::InfiniteDuration());

 private:
  sigset_t set_;
};

}  // namespace bridge
