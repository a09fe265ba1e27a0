// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/json_array.h"

#include "bridge/base/error.h"

namespace bridge {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

void JsonArraySplitter::Feed(std::string_view bytes) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    at_ -= begin_;
    begin_ = 0;
  }
  buffer_.append(bytes);
}

bool JsonArraySplitter::Next(std::string_view* element) {
  while (at_ < buffer_.size() && state_ != State::kFailed) {
    const char c = buffer_[at_++];
    if (state_ != State::kElement) {
      if (!TakeStructure(c)) state_ = State::kFailed;
      if (state_ != State::kElement) begin_ = at_;
      continue;
    }
    if (at_ - begin_ > max_) {
      state_ = State::kFailed;
      return false;
    }
    if (!EndsElement(c)) continue;
    *element = std::string_view(buffer_).substr(begin_, at_ - begin_);
    state_ = State::kBetween;
    any_ = true;
    comma_ = false;
    begin_ = at_;
    return true;
  }
  return false;
}

// A character outside of all elements.
bool JsonArraySplitter::TakeStructure(char c) {
  if (IsSpace(c)) return true;
  switch (state_) {
    case State::kBegin:
      state_ = State::kBetween;
      return c == '[';
    case State::kBetween:
      if (c == ']') {
        state_ = State::kEnd;
        return !comma_;
      }
      if (c == ',') {
        const bool expected = any_ && !comma_;
        comma_ = true;
        return expected;
      }
      state_ = State::kElement;
      depth_ = 1;
      return c == '{' && (!any_ || comma_);
    default:
      return false;
  }
}

bool JsonArraySplitter::EndsElement(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return false;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (c == '}' || c == ']') --depth_;
  return depth_ == 0;
}

absl::Status JsonArraySplitter::Finish() const {
  if (state_ == State::kEnd) return absl::OkStatus();
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   state_ == State::kFailed ? "the sandbox's daemon sent a list that cannot be read"
                                            : "the sandbox's daemon sent a list without its end");
}

}  // namespace bridge
