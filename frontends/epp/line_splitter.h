// SPDX-License-Identifier: Apache-2.0
//
// epp/line_splitter.h — bytes → lines, with a bound on what is kept.
//
// A line that grows beyond the bound is not buffered: its beginning goes to OnOverlong() and the
// rest is skipped up to its end, so that memory stays flat and the next line is read as usual.
// Blank lines are dropped, a CR before the LF too. Pure: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bridge::epp {

class LineSink {
 public:
  virtual void OnLine(std::string line) = 0;
  // `beginning` holds the first bytes of a line of `line_bytes` bytes, its "\n" included.
  virtual void OnOverlong(std::string_view beginning, uint64_t line_bytes) = 0;

 protected:
  ~LineSink() = default;
};

class LineSplitter {
 public:
  // Lines of at most `max_bytes`, the "\n" included. `sink` must outlive the splitter.
  LineSplitter(size_t max_bytes, LineSink& sink) : max_bytes_(max_bytes), sink_(sink) {}

  void Feed(std::string_view bytes);
  // The end of input: what is left is a line without an end.
  void Finish();

 private:
  void Append(std::string_view part);
  void EndLine();

  // What OnOverlong() gets: enough to find the id in.
  static constexpr size_t kKeptBytes = 4096;

  const size_t max_bytes_;
  LineSink& sink_;
  std::string line_;
  uint64_t line_bytes_ = 0;  // of the present line so far, skipped bytes included
  bool skipping_ = false;
};

}  // namespace bridge::epp
