// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/line_splitter.h"

namespace bridge::local::execd {

void CommandLineSplitter::Deliver(std::string_view line, const LineSink& sink) {
  if (!partial_.empty()) {
    partial_.append(line);
    sink(partial_);
    partial_.clear();
  } else {
    sink(line.empty() ? std::string_view("\n") : line);
  }
}

void CommandLineSplitter::Feed(std::string_view bytes, const LineSink& sink) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      partial_.append(bytes);
      return;
    }
    after_cr_ = bytes[end] == '\r';
    Deliver(bytes.substr(0, end), sink);
    bytes.remove_prefix(end + 1);
  }
}

void CommandLineSplitter::Finish(const LineSink& sink) {
  if (!partial_.empty()) Deliver("", sink);
}

void SessionLineSplitter::Deliver(std::string_view line, const LineSink& sink) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (!line.empty()) sink(line);
}

void SessionLineSplitter::Feed(std::string_view bytes, const LineSink& sink) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      partial_.append(bytes);
      return;
    }
    if (partial_.empty()) {
      Deliver(bytes.substr(0, end), sink);
    } else {
      partial_.append(bytes.substr(0, end));
      Deliver(partial_, sink);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void SessionLineSplitter::Finish(const LineSink& sink) {
  Deliver(partial_, sink);
  partial_.clear();
}

}  // namespace bridge::local::execd
