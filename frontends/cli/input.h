// SPDX-License-Identifier: Apache-2.0
//
// cli/input.h — what `sbx exec` and `sbx run` give a command to read.
//
// A command gets all of its input with its start, so it must be known whether there is any:
//   a terminal                nothing, unless asked (-i): a command must not wait for a person
//   a file, /dev/null         all of it
//   closed                    nothing
//   a pipe, a socket          all of it once its first byte or its end has come within `grace`;
//                             a pipe that stays silent is taken for one that nobody writes to
// What comes on such a pipe later is noticed, never swallowed: see InputCameLate().
// Blocks the calling thread; readable `abandon_fd` ends it with Cancelled.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bridge::cli {

enum class InputMode {
  kAuto,
  kWait,  // -i: everything up to the end, however long it takes
  kNone,  // -n
};

struct Input {
  std::string bytes;
  // The pipe was silent for the whole grace period and is still open.
  bool left_open = false;
};

inline constexpr absl::Duration kInputGrace = absl::Seconds(1);
inline constexpr size_t kMaxInputBytes = size_t{8} << 20;  // ExecSpec.stdin

// ResourceExhausted: more than kMaxInputBytes. Unknown: reading failed.
absl::StatusOr<Input> GatherInput(int fd, InputMode mode, absl::Duration grace, int abandon_fd);

// Bytes wait in a pipe that was left open: the command ran without them.
bool InputCameLate(int fd);

}  // namespace bridge::cli
