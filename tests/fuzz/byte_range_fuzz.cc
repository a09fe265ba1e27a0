// SPDX-License-Identifier: Apache-2.0
//
// Whatever a Range header says, the part that is served lies within the file.
#include <cstring>

#include "bridge/local/execd/byte_range.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  int64_t file_size = 0;
  if (text.size() >= sizeof(file_size)) {
    std::memcpy(&file_size, text.data(), sizeof(file_size));
    text.remove_prefix(sizeof(file_size));
    file_size &= INT64_MAX;
  }
  using bridge::local::execd::ByteRange;
  const ByteRange range = bridge::local::execd::ParseByteRange(text, file_size);
  if (range.kind != ByteRange::Kind::kPart) return 0;
  // "bytes=-0" is an empty part at the end, as Go has it.
  FUZZ_CHECK(range.start >= 0 && range.length >= 0);
  FUZZ_CHECK(range.start <= file_size - range.length);
  return 0;
}
