// SPDX-License-Identifier: Apache-2.0
//
// epp/output_text.h — what a program printed, as text for JSON. Pure.
#pragma once

#include <string>
#include <string_view>

namespace bridge::epp {

// One stream's bytes as UTF-8. A sequence that a chunk cuts in two is kept for the next chunk;
// bytes that are no UTF-8 become U+FFFD each.
class OutputText {
 public:
  // Valid text; may be empty when all of `bytes` is the beginning of a sequence.
  std::string Feed(std::string_view bytes);
  // What is left at the end of the stream.
  std::string Finish();

 private:
  std::string tail_;  // at most 3 bytes: the beginning of a sequence
};

}  // namespace bridge::epp
