// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/signals.h"

#include <pthread.h>

#include <algorithm>

namespace bridge {

Signals::Signals() {
  sigemptyset(&set_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int Signals::Wait(absl::Duration bound) {
  const timespec time = absl::ToTimespec(std::clamp(bound, absl::ZeroDuration(), absl::Hours(1)));
  do {
    const int signal = sigtimedwait(&set_, nullptr, &time);
    if (signal > 0) return signal;  // else time was up, or a debugger interrupted
  } while (bound == absl::InfiniteDuration());
  return 0;
}

}  // namespace bridge
