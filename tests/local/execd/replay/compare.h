// SPDX-License-Identifier: Apache-2.0
//
// Is an answer the recorded one, but for what differs from run to run? Differences come as
// sentences; none means that it is.
#pragma once

#include <string>
#include <vector>

#include "tests/local/execd/replay/raw_client.h"
#include "tests/local/execd/replay/recording.h"

namespace bridge::local::execd {

using Differences = std::vector<std::string>;

// Ids, times and numbers replaced by words.
std::string Normalize(std::string text);

// Whole answers, not WebSockets. `read_to_end`: the answer was read to its end, so the linger can
// be compared.
Differences CompareAnswers(const Recording& recorded, const RawAnswer& answer, bool read_to_end);

// What a WebSocket brought, put together: `text` frames in order, replay frames, output by stream.
struct SocketStory {
  std::vector<std::string> order;  // kinds of frames: "replay", "out", "err" … repeats left out
  std::vector<std::string> texts;  // normalized
  std::vector<std::string> replays;
  std::string out;
  std::string err;
  std::vector<std::string> pongs;
  int pings = 0;
  std::string close;  // "1000 process exited", empty when none came

  void Add(int opcode, const std::string& payload);
};
SocketStory StoryOf(const Recording& recorded);
// `tail_may_be_missing`: our output may be a prefix (the terminal's end outruns it).
Differences CompareStories(const SocketStory& recorded, const SocketStory& ours,
                           bool tail_may_be_missing);

}  // namespace bridge::local::execd
