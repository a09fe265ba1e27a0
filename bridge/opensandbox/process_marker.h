// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_marker.h — how a process's end is told inside its own output, so that it
// comes behind the last byte and cannot outrun it: the wrapper that runs the program prints a
// marker that nobody can guess. The scanner takes markers out of the output, wherever they are
// split, also where the other stream's output lies between their parts. Markers count in the
// daemon's numbering and not in the API's: each tells how many were printed before it, so that the
// one numbering can be made from the other anywhere. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/opensandbox/exec_types.h"

namespace bridge {

struct ProcessMark {
  enum class Kind {
    kStarted,    // the program was started once more
    kExited,     // value: its exit code
    kSignal,     // value: the signal that killed it
    kFailed,     // value: 127 not found, 126 not executable, 125 bad user, 124 bad directory
    kCancelled,  // value: the signal that killed it, which a caller had sent
  };
  Kind kind = Kind::kExited;
  int value = 0;
  // Of this process, from 0. Even: the end of run number/2; odd: the start of the next run.
  int number = 0;
};

inline constexpr size_t kProcessMarkBytes = 47;
inline constexpr char kProcessMarkEdge = '\x1e';

// \x1e NONCE : K : DDD : NNNNNN \x1e, with a nonce of 32 characters.
std::string FormatProcessMark(std::string_view nonce, ProcessMark mark);
// Nothing for what is none. Does not look at the nonce.
std::optional<ProcessMark> ParseProcessMark(std::string_view text);

// What every mark of one process looks like.
class ProcessMarkPattern {
 public:
  explicit ProcessMarkPattern(std::string_view nonce)
      : prefix_(kProcessMarkEdge + std::string(nonce) + ":") {}

  // \x1e NONCE :
  std::string_view prefix() const { return prefix_; }
  // How many of these bytes a mark may have from its byte `at` on.
  size_t Match(size_t at, std::string_view bytes) const;

 private:
  const std::string prefix_;
};

// Of its letter K; nothing for what is none.
std::optional<ProcessMark::Kind> ProcessMarkKind(std::string_view letter);

// How a process ended by its mark; nothing for kStarted.
std::optional<Outcome> OutcomeOfMark(ProcessMark mark);

// Output in the order in which the daemon numbers it. What may be the beginning of a marker is kept
// back until it is known, and with it all that came later, on the other stream, too: so that what
// comes out is always the next byte.
class ProcessMarkScanner {
 public:
  ProcessMarkScanner(std::string_view nonce, bool terminal)
      : pattern_(nonce), terminal_(terminal) {}

  // Either bytes or a mark.
  struct Piece {
    std::optional<StreamId> stream = {};
    std::string data = {};
    std::optional<ProcessMark> mark = {};
  };

  // The pieces that are known after the next bytes. Of a replay the stream is not known; what is
  // undecided at its end may go on in either.
  std::vector<Piece> Feed(std::optional<StreamId> stream, std::string_view bytes);
  // Something may be the beginning of a marker, and waits for what follows.
  bool undecided() const { return !runs_.empty(); }
  size_t kept_bytes() const { return kept_; }
  // It is none.
  std::vector<Piece> Release();

 private:
  // Bytes that came together and are one thing.
  struct Run {
    std::optional<StreamId> stream;
    std::string data;
    int candidates = 0;  // markers that these may be a part of
    bool hidden = false;
    std::optional<ProcessMark> mark = {};  // the last run of one
  };
  // What may become a marker on one stream.
  struct Candidate {
    std::string text = {};
    std::vector<Run*> runs = {};
  };

  void Append(std::optional<StreamId> stream, std::string_view bytes, Candidate* candidate);
  void Complete(Candidate* candidate);
  void Drop(Candidate* candidate);
  void Merge();
  std::vector<Piece> Known();

  const ProcessMarkPattern pattern_;
  const bool terminal_;
  Candidate out_;
  Candidate err_;
  std::deque<Run> runs_;  // from the first undecided one on
  size_t kept_ = 0;       // bytes in runs_
};

// Numbers of output bytes: the daemon counts markers, the API does not.
class ProcessNumbering {
 public:
  // A process on pipes prints each marker on both streams.
  explicit ProcessNumbering(bool terminal) : copies_(terminal ? 1 : 2) {}

  // So many markers were printed before what comes next, and all of their copies.
  void Begin(int marks) { Begin(marks, HiddenBytes(marks)); }
  // So many bytes of them, where a copy lies elsewhere.
  void Begin(int marks, int64_t hidden);
  void Take(const ProcessMark& mark);

  // The API's number of the daemon's byte `offset`, with all markers before it taken and none
  // behind it.
  int64_t ToApi(int64_t offset) const { return offset - hidden_; }
  // The run that gets input now, counted from 0; after an end the next one.
  int run() const { return (marks_ + 1) / 2; }
  int marks() const { return marks_; }
  // The last marker told of an end.
  bool ended() const { return marks_ % 2 == 1; }
  // Of those every copy was taken.
  bool whole() const { return hidden_ == HiddenBytes(marks_); }

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
