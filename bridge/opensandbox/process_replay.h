// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_replay.h — what a daemon replays of a process's output, put in order. Of a
// process on pipes it is both streams in one, as the daemon read them: a mark may lie there in two
// parts with the other stream's output between them, and one of its two copies, or a part of one,
// before the first byte. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bridge/opensandbox/process_marker.h"

namespace bridge {

// The two copies of a mark are printed one behind the other. So far apart a daemon may number them:
// what one pipe holds, what has been read of it, and the marks of a restart.
inline constexpr int64_t kMarkSpread =
    64 * 1024 + 64 * 1024 + 4 * static_cast<int64_t>(kProcessMarkBytes);

// What the marks in a replay tell of what lies before it.
struct BeforeReplay {
  int marks = 0;           // different ones that were printed before the first of them
  int64_t hidden = 0;      // bytes of marks
  bool last_copy = false;  // a copy of the last one
};

struct ProcessReplay {
  std::string data = {};  // every mark that is known to be one is in one piece
  int64_t offset = 0;     // the daemon's number of its first byte, behind the rest of a cut mark
  std::optional<BeforeReplay> before = {};  // nothing: there is no mark in it
};

// `offset`: the daemon's number of the first byte. A replay goes to the end of the output. One that
// does not begin with the output is longer than two spreads: a mark that is in it once is near its
// beginning, and has its other copy before it, or near its end, and the other one is still to come.
ProcessReplay PutReplayInOrder(std::string_view nonce, bool terminal, int64_t offset,
                               std::string data, int64_t spread = kMarkSpread);

}  // namespace bridge
