// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/line_stamper.h — "2026-11-29T16:46:38.797089636Z " before every line of a program's
// output, as `docker logs --timestamps` shows it. A line is stamped when its first byte arrives.
// One thread.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace bridge::local::runtime {

class LineStamper {
 public:
  // What to append to the log for `bytes` that arrived at `now`.
  std::string Stamp(std::string_view bytes, timespec now);
  // The line end that a last, unfinished line lacks.
  std::string Finish();

 private:
  bool at_line_start_ = true;
};

}  // namespace bridge::local::runtime
