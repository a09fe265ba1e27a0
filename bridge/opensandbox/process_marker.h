// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_marker.h — how a process's end is told inside its own output, so that it
// comes behind the last byte and cannot outrun it: the wrapper that runs the program prints a
// marker that nobody can guess. The scanner takes markers out of the output, wherever they are
// split. Markers count in the daemon's numbering and not in what is delivered: numbers may jump
// between two runs of a process. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/opensandbox/exec_types.h"

namespace bridge {

struct ProcessMark {
  enum class Kind {
    kStarted,  // the program was started once more
    kExited,   // value: its exit code
    kSignal,   // value: the signal that killed it
    kFailed,   // value: 127 not found, 126 not executable, 125 bad user, 124 bad directory
  };
  Kind kind = Kind::kExited;
  int value = 0;
};

inline constexpr size_t kProcessMarkBytes = 40;

// \x1e NONCE : K : DDD \x1e, with a nonce of 32 characters.
std::string FormatProcessMark(std::string_view nonce, ProcessMark mark);

// How a process ended by its mark; nothing for kStarted.
std::optional<Outcome> OutcomeOfMark(ProcessMark mark);

class ProcessMarkScanner {
 public:
  explicit ProcessMarkScanner(std::string_view nonce)
      : prefix_("\x1e" + std::string(nonce) + ":") {}

  // Either bytes or a mark, in the order of the stream.
  struct Piece {
    std::string data = {};
    std::optional<ProcessMark> mark = {};
    int64_t offset = 0;  // of its first byte
  };

  // The pieces of the next bytes, which begin at `offset`. What may be the beginning of a marker is
  // kept back until it is known.
  std::vector<Piece> Feed(std::string_view bytes, int64_t offset);
  // What was kept back is no marker.
  std::vector<Piece> Finish();

 private:
  void Emit(std::string_view bytes, std::vector<Piece>* pieces);

  const std::string prefix_;
  std::string kept_;
  int64_t offset_ = 0;  // of kept_'s first byte
};

}  // namespace bridge
