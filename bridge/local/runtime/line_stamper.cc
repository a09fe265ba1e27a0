// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/line_stamper.h"

#include <cstdio>

namespace bridge::local::runtime {

std::string LineStamper::Stamp(std::string_view bytes, timespec now) {
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char stamp[80];
  const int length =
      snprintf(stamp, sizeof(stamp), "%04d-%02d-%02dT%02d:%02d:%02d.%09ldZ ", utc.tm_year + 1900,
               utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, now.tv_nsec);
  std::string out;
  out.reserve(bytes.size() + 64);
  while (!bytes.empty()) {
    if (at_line_start_) out.append(stamp, static_cast<size_t>(length));
    const size_t end = bytes.find('\n');
    const size_t taken = end == std::string_view::npos ? bytes.size() : end + 1;
    out.append(bytes.substr(0, taken));
    at_line_start_ = end != std::string_view::npos;
    bytes.remove_prefix(taken);
  }
  return out;
}

std::string LineStamper::Finish() {
  if (at_line_start_) return "";
  at_line_start_ = true;
  return "\n";
}

}  // namespace bridge::local::runtime
