// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share. A target is LLVMFuzzerTestOneInput() in a *_fuzz.cc; it aborts when
// something is not as it must be. See tests/fuzz/BUILD.bazel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#define FUZZ_CHECK(condition)                                                      \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

namespace bridge {

inline std::string_view FuzzText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes the first byte off, as a choice; 0 when there is none.
inline uint8_t TakeChoice(std::string_view* text) {
  if (text->empty()) return 0;
  const auto choice = static_cast<uint8_t>(text->front());
  text->remove_prefix(1);
  return choice;
}

// The text in pieces whose lengths follow from `choice`.
inline std::vector<std::string_view> FuzzPieces(std::string_view text, uint8_t choice) {
  std::vector<std::string_view> pieces;
  size_t length = choice % 7 + 1;
  while (!text.empty()) {
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(pieces.back().size());
    length = length * 3 % 61 + choice / 7 % 3;
    if (length == 0) length = 1;
  }
  return pieces;
}

}  // namespace bridge
