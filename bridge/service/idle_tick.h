// SPDX-License-Identifier: Apache-2.0
//
// service/idle_tick.h — keeps gRPC 1.51's callback threads awake.
//
// After one second without an event each of them sleeps 100 ms at a time (completion_queue_cc.cc),
// and when all of them sleep a request waits that long: one call in thirty on an idle server. A
// call on a lame channel (no server, no socket, fails at once) puts one event into the queue that
// they share. Any period well below a second does; 300 ms cost 0.1 % of a core. Does not show in
// any metric.
#pragma once

#include "absl/time/time.h"
#include "bridge/base/periodic_thread.h"

namespace bridge {

class IdleTick {
 public:
  explicit IdleTick(absl::Duration period = absl::Milliseconds(300));

 private:
  PeriodicThread thread_;
};

}  // namespace bridge
