// SPDX-License-Identifier: Apache-2.0
//
// local/execd/daemon.h — execd as a whole: its routes on a server of its own.
//
// Owns every child of the program while it lives (see process.h), so there is one a program. Start
// makes the program ignore SIGPIPE.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/local/execd/habits.h"
#include "bridge/local/http/server.h"

namespace bridge::local::execd {

struct DaemonOptions {
  Habits habits = kHabitsCurrent;
  std::string access_token;  // empty: none is asked for
  // The port that clients know it by: `/proxy/PORT` of it comes back here. 0: the one it listens
  // on.
  int known_port = 0;
  http::ServerOptions server;
};

class Daemon {
 public:
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(DaemonOptions options);
  // Ends all connections and kills everything that was started.
  ~Daemon();

  int port() const;

  class Impl;

 private:
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge::local::execd
