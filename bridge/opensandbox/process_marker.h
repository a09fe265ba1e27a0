// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_marker.h — how a process's end is told inside its own output, so that it
// comes behind the last byte and cannot outrun it: the wrapper that runs the program prints a
// marker that nobody can guess. The scanner takes markers out of the output, wherever they are
// split. Markers count in the daemon's numbering and not in the API's: each tells how many were
// printed before it, so that the one numbering can be made from the other anywhere. Pure.
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
  // Of this process, from 0. Even: the end of run number/2; odd: the start of the next run.
  int number = 0;
};

inline constexpr size_t kProcessMarkBytes = 47;

// \x1e NONCE : K : DDD : NNNNNN \x1e, with a nonce of 32 characters.
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
  size_t kept_bytes() const { return kept_.size(); }
  // What was kept back is no marker.
  std::vector<Piece> Finish();

 private:
  void Emit(std::string_view bytes, std::vector<Piece>* pieces);

  const std::string prefix_;
  std::string kept_;
  int64_t offset_ = 0;  // of kept_'s first byte
};

// Numbers of output bytes: the daemon counts markers, the API does not.
class ProcessNumbering {
 public:
  // A process on pipes prints each marker on both streams.
  explicit ProcessNumbering(bool terminal) : copies_(terminal ? 1 : 2) {}

  // So many markers were printed before what comes next.
  void Begin(int marks);
  void Take(const ProcessMark& mark);

  // The API's number of the daemon's byte `offset`, with all markers before it taken.
  int64_t ToApi(int64_t offset) const { return offset - hidden_; }
  // The run that gets input now, counted from 0; after an end the next one.
  int run() const { return (marks_ + 1) / 2; }
  int marks() const { return marks_; }
  // The last marker told of an end.
  bool ended() const { return marks_ % 2 == 1; }

  // Bytes of so many markers.
  int64_t HiddenBytes(int marks) const {
    return static_cast<int64_t>(kProcessMarkBytes) * marks * copies_;
  }

 private:
  const int copies_;
  int marks_ = 0;       // different ones seen or told of
  int64_t hidden_ = 0;  // bytes of all that were taken
};

}  // namespace bridge
