// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/event_stream.h"

#include <fmt/format.h>

#include <cassert>

#include "bridge/base/error.h"

namespace bridge {
namespace {

constexpr size_t kKeepBytes = 64 * 1024;  // a large event must not keep its memory for ever
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The event text that a line holds; empty when it holds none.
std::string_view TextOf(std::string_view line) {
  if (line.empty() || line.front() == ':') return {};
  if (line.front() == '{') return line;
  if (line.starts_with("data:")) {
    line.remove_prefix(5);
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    return line;
  }
  for (const std::string_view field : {"event", "id", "retry", "data"}) {
    if (line.starts_with(field) && (line.size() == field.size() || line[field.size()] == ':')) {
      return {};
    }
  }
  return line;
}

}  // namespace

void EventStreamParser::Feed(std::string_view bytes) {
  assert(input_.empty() && !finished_);
  if (status_.ok()) input_ = bytes;
}

void EventStreamParser::Finish() {
  assert(input_.empty());
  finished_ = true;
}

bool EventStreamParser::Next(std::string_view* text) {
  std::string_view line;
  while (NextLine(&line)) {
    if (at_start_) {
      at_start_ = false;
      if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    }
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    *text = TextOf(line);
    if (!text->empty()) return true;
  }
  return false;
}

// A line that began in an earlier chunk is completed in partial_; all others stay where they are.
// Each byte is looked at once.
bool EventStreamParser::NextLine(std::string_view* line) {
  if (given_out_) {
    given_out_ = false;
    if (partial_.capacity() > kKeepBytes) partial_ = {};
    partial_.clear();
  }
  if (!status_.ok()) return false;
  const size_t end = input_.find('\n');
  const size_t length = end == std::string_view::npos ? input_.size() : end;
  if (TooLong(partial_.size() + length)) return false;
  if (end == std::string_view::npos) {
    partial_.append(input_);
    input_ = {};
    if (!finished_ || partial_.empty()) return false;
    *line = partial_;
    given_out_ = true;
    return true;
  }
  *line = input_.substr(0, end);
  input_.remove_prefix(end + 1);
  if (!partial_.empty()) {
    partial_.append(*line);
    *line = partial_;
    given_out_ = true;
  }
  return true;
}

bool EventStreamParser::TooLong(size_t line_bytes) {
  if (line_bytes <= max_event_bytes_) return false;
  status_ =
      MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                fmt::format("an event of the stream is larger than {} bytes", max_event_bytes_));
  input_ = {};
  partial_ = {};
  return true;
}

}  // namespace bridge
