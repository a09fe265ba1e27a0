// SPDX-License-Identifier: Apache-2.0
//
// local/execd/habits.h — what differs between the versions of execd that this one can stand in for.
// Immutable values.
#pragma once

#include <optional>
#include <string_view>

#include "absl/time/time.h"

namespace bridge::local::execd {

struct Habits {
  // "1.1.0" is the daemon of the recordings (built in June 2026; v1.1.0 is the last release without
  // argv). "current" is the newest that could be read about, September 2026.
  //
  // Output of `/command` loses its line ends in both. One document says that newer daemons keep
  // them; the newest source that could be read still cuts them off, and no running daemon was seen
  // that does not. A client that copes with the loss copes with its absence too, so the loss is
  // imitated.
  std::string_view name;
  // `argv` in `POST /command`: exactly one of it and `command`.
  bool argv = false;
  // Output files in a private directory ($TMPDIR/opensandbox-execd, 0700) and removed after use,
  // instead of for ever in $TMPDIR.
  bool private_spool = false;
  // How long a stream stays open after its last event.
  absl::Duration linger;
  // File routes also below /v1/filesystem/{uid}/{gid}.
  bool filesystem_prefix = false;
  // `/ping` needs no token.
  bool open_ping = false;
  // A background command is unknown to status, logs and interrupt for so long after its `init`.
  // Measured: 4 to 16 ms. No release note says that it was ever changed.
  absl::Duration background_race = absl::Milliseconds(8);
  // A PTY whose directory cannot be made: the error object is followed by the answer of a success.
  bool double_pty_error = false;
  // Children of `/session` and `/pty` ignore SIGINT while no `/command` runs. The real daemon is
  // started by a shell that makes it so; a client has to live with it.
  bool idle_children_ignore_sigint = true;
  // The routes of docs/execd-extras.md are there. Without them this is a stock daemon.
  bool extras = true;
};

inline constexpr Habits kHabits110 = {
    .name = "1.1.0", .linger = absl::Seconds(1), .double_pty_error = true};
inline constexpr Habits kHabitsCurrent = {.name = "current",
                                          .argv = true,
                                          .private_spool = true,
                                          .linger = absl::Milliseconds(200),
                                          .filesystem_prefix = true,
                                          .open_ping = true};

// The habits of `--compat=NAME`.
inline std::optional<Habits> FindHabits(std::string_view name) {
  if (name == kHabits110.name) return kHabits110;
  if (name == kHabitsCurrent.name) return kHabitsCurrent;
  return std::nullopt;
}

}  // namespace bridge::local::execd
