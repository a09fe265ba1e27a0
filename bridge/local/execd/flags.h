// SPDX-License-Identifier: Apache-2.0
//
// local/execd/flags.h — the command line and environment of execd. Reads the environment; otherwise
// pure.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "bridge/local/execd/daemon.h"
#include "bridge/local/execd/habits.h"

namespace bridge::local::execd {

struct Flags {
  Habits habits = kHabitsCurrent;        // --compat, --extras; EXECD_COMPAT, EXECD_EXTRAS
  std::optional<absl::Duration> linger;  // --graceful-shutdown-timeout, EXECD_API_GRACE_SHUTDOWN
  std::string access_token;              // --access-token, EXECD_ACCESS_TOKEN
  int port = 44772;                      // --port: the number that clients know
  std::string host = "0.0.0.0";          // --listen=HOST:PORT: where it really listens
  int listen_port = 44772;               // as above; 0: any free one
  int listen_fd = -1;                    // --listen-fd: an inherited listening socket instead
  std::string port_file;                 // --port-file: gets the real port when it listens

  DaemonOptions ToOptions() const;
};

struct FlagResult {
  std::string error;          // empty: fine
  bool exit_at_once = false;  // there was an argument that is no flag
};

FlagResult ParseFlags(int argc, const char* const* argv, Flags* flags);

}  // namespace bridge::local::execd
