// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/line_splitter.h"

#include <utility>

namespace bridge::epp {

void LineSplitter::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return Append(bytes);
    Append(bytes.substr(0, end));
    ++line_bytes_;
    EndLine();
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::Finish() {
  if (line_bytes_ > 0) EndLine();
}

void LineSplitter::Append(std::string_view part) {
  line_bytes_ += part.size();
  if (skipping_) return;
  if (line_.size() + part.size() < max_bytes_) {
    line_.append(part);
    return;
  }
  skipping_ = true;
  if (line_.size() < kKeptBytes) line_.append(part.substr(0, kKeptBytes - line_.size()));
  // Given back at once: what is skipped may be many times the bound.
  std::string(line_, 0, kKeptBytes).swap(line_);
}

void LineSplitter::EndLine() {
  std::string line = std::exchange(line_, {});
  const uint64_t bytes = std::exchange(line_bytes_, 0);
  if (std::exchange(skipping_, false)) return sink_.OnOverlong(line, bytes);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  sink_.OnLine(std::move(line));
}

}  // namespace bridge::epp
