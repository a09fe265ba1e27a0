// SPDX-License-Identifier: Apache-2.0
//
// cli/copy.h — what both directions of `sbx cp` share: places, options, what was done, and how it
// is shown. Main thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "frontends/cli/command.h"

namespace bridge::cli {

// One side of a copy.
struct Place {
  std::string sandbox_id = {};  // empty: this machine
  std::string path = {};        // "-" on this machine: stdin or stdout
  bool remote() const { return !sandbox_id.empty(); }
  bool stream() const { return !remote() && path == "-"; }
};

// "ID:/absolute/path" is in a sandbox; what has a slash before the first colon, or no colon, is on
// this machine. InvalidArgument: a path in a sandbox that is not absolute.
absl::StatusOr<Place> ParsePlace(const std::string& word);

// The last part of a path; empty for "/", "." and "..".
std::string LastPart(std::string_view path);
std::string JoinPath(std::string_view directory, std::string_view name);
// May a path relative to a copied directory be used on this machine? Not if it could leave the
// directory.
bool IsSafeRelative(std::string_view path);

struct CopyOptions {
  bool recursive = false;
  bool follow = false;  // a link counts as what it points to
};

struct CopyReport {
  int64_t files = 0;        // copied
  int64_t unchanged = 0;    // were there already: same size, time and kind
  int64_t directories = 0;  // made
  int64_t links = 0;
  int64_t bytes = 0;
  int64_t failed = 0;
  Json ToJson() const;
  std::string ToText() const;
};

// A line on stderr that is written over and over: what is copied, how much of it, how fast. Only
// where stderr is a terminal.
class Progress {
 public:
  Progress(Streams& streams, bool enabled) : streams_(streams), enabled_(enabled) {}
  ~Progress() { Clear(); }

  // `total`: 0 when it is not known. `done`: of an earlier run.
  void Begin(std::string_view name, int64_t total, int64_t done = 0);
  void Add(int64_t bytes);
  // Takes the line away, so that something else can be said.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(Clock::time_point now);

  Streams& streams_;
  const bool enabled_;
  std::string name_;
  int64_t total_ = 0, done_ = 0, skipped_ = 0;
  Clock::time_point began_, drawn_;
  bool visible_ = false;
};

// The line itself, at most 79 columns. Pure.
std::string ProgressLine(std::string_view name, int64_t done, int64_t total, double bytes_a_second);

// What a copy works with.
struct Copy {
  Context& context;
  const CopyOptions options;
  CopyReport report = {};
  Progress progress;

  // Says what is wrong with one entry and goes on.
  void Fail(std::string_view what, std::string_view message);
  // The same for a failed call.
  void Fail(std::string_view what, const grpc::Status& status);
  void Fail(std::string_view what, Failure failure);
  bool interrupted() const { return context.interrupts.first() != 0; }
};

}  // namespace bridge::cli
