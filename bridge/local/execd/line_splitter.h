// SPDX-License-Identifier: Apache-2.0
//
// local/execd/line_splitter.h — output cut into lines the way the two kinds of streams do it. The
// bytes may come in any pieces. Not thread safe: one splitter a stream.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace bridge::local::execd {

using LineSink = std::function<void(std::string_view line)>;

// `/command`: "\n", "\r" and "\r\n" end a line and are dropped; an empty line is delivered as "\n".
// A line that "\r" ends is delivered at once, before it is known whether "\n" follows.
class CommandLineSplitter {
 public:
  void Feed(std::string_view bytes, const LineSink& sink);
  // The stream has ended: an unfinished line is delivered as if it were finished.
  void Finish(const LineSink& sink);

 private:
  void Deliver(std::string_view line, const LineSink& sink);

  std::string partial_;
  bool after_cr_ = false;  // the last byte seen was "\r": a "\n" that follows is part of it
};

// `/session/{id}/run`: only "\n" ends a line; one "\r" before it is dropped; empty lines vanish.
class SessionLineSplitter {
 public:
  void Feed(std::string_view bytes, const LineSink& sink);
  void Finish(const LineSink& sink);

 private:
  static void Deliver(std::string_view line, const LineSink& sink);

  std::string partial_;
};

}  // namespace bridge::local::execd
