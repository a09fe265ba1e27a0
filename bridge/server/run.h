// SPDX-License-Identifier: Apache-2.0
//
// server/run.h — a server's life from its start to its exit code, by signals:
//
//   SIGTERM   not ready at once; after the drain delay new calls are refused; running ones get the
//             grace; exit 0
//   SIGINT    the same without the delay
//   a second  of the two: ends at once, exit 130 or 143
//   SIGHUP    files are read again; on a terminal it means that the terminal is gone, as SIGINT
//   SIGUSR1   the running calls go to the log
#pragma once

#include "absl/time/time.h"
#include "bridge/server/log.h"
#include "bridge/server/server.h"
#include "bridge/server/signals.h"

namespace bridge {

struct DrainOptions {
  // Between "not ready" and refusing calls: until load balancers have noticed.
  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration grace = absl::Seconds(20);
  bool on_terminal = false;
};

// Main thread. The exit code: 0, or 3 when something was left over.
int RunUntilSignal(Server& server, Signals& signals, Log& log, const DrainOptions& options);

}  // namespace bridge
