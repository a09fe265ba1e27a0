// SPDX-License-Identifier: Apache-2.0
//
// local/execd/byte_range.h — the Range header as execd's download reads it: only the first range of
// a list is served, a suffix longer than the file is the whole file. Pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace bridge::local::execd {

struct ByteRange {
  enum class Kind {
    kNone,       // no header, or one without any range in it: the whole file
    kPart,       // serve [start, start + length)
    kNoOverlap,  // well formed, but all of it lies behind the end of the file
    kMalformed,
  };
  Kind kind = Kind::kNone;
  int64_t start = 0;
  int64_t length = 0;
};

// `header` is the field's value, empty when there is none.
ByteRange ParseByteRange(std::string_view header, int64_t file_size);

}  // namespace bridge::local::execd
