// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/json_array.h — the elements of a JSON array of objects as they arrive, so that a list
// of a hundred thousand files needs the memory of one. Looks at strings and braces only; whether an
// element is right is for its parser to say. Pure, incremental, bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace bridge {

//   splitter.Feed(bytes);
//   while (splitter.Next(&element)) use(element);     // valid until the next call of anything here
//   ...
//   RETURN_IF_ERROR(splitter.Finish());               // was it a whole array?
class JsonArraySplitter {
 public:
  explicit JsonArraySplitter(size_t max_element_bytes = 1 << 20) : max_(max_element_bytes) {}

  void Feed(std::string_view bytes);
  bool Next(std::string_view* element);
  // UPSTREAM_PROTOCOL: not an array of objects, an element that is too long, or no end.
  absl::Status Finish() const;
  bool failed() const { return state_ == State::kFailed; }

 private:
  enum class State { kBegin, kBetween, kElement, kEnd, kFailed };
  bool TakeStructure(char c);
  bool EndsElement(char c);

  const size_t max_;
  std::string buffer_;
  size_t begin_ = 0;  // of the element in buffer_
  size_t at_ = 0;     // the next byte to look at
  State state_ = State::kBegin;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool any_ = false;  // an element was seen
  bool comma_ = false;
};

}  // namespace bridge
