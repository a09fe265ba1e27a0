// SPDX-License-Identifier: Apache-2.0
//
// An input in one piece, in every pair of pieces and in every triple of pieces, so that a parser's
// answer can be shown not to depend on how its input arrives.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bridge::local::execd {

using Pieces = std::vector<std::string_view>;

inline void ForEachSplit(std::string_view input, const std::function<void(const Pieces&)>& check) {
  check({input});
  for (size_t i = 0; i <= input.size(); ++i) {
    check({input.substr(0, i), input.substr(i)});
    for (size_t j = i; j <= input.size(); ++j) {
      check({input.substr(0, i), input.substr(i, j - i), input.substr(j)});
    }
  }
}

// For a failure's message: where the cuts are.
inline std::string Describe(const Pieces& pieces) {
  std::string out;
  for (const std::string_view piece : pieces) out += std::to_string(piece.size()) + " ";
  return out;
}

}  // namespace bridge::local::execd
