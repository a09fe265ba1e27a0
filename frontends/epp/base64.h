// SPDX-License-Identifier: Apache-2.0
//
// epp/base64.h — base64 in parts, so that a file is never held twice. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bridge::epp {

// Bytes in, one text out.
class Base64Writer {
 public:
  // Appends to `*target`, which must outlive this.
  explicit Base64Writer(std::string* target) : target_(target) {}
  void Append(std::string_view bytes);
  void Finish();

 private:
  std::string* const target_;
  std::string rest_;  // 0 to 2 bytes that make no group yet
};

// How many bytes `text` stands for, if it is base64.
size_t Base64DecodedSize(std::string_view text);

// Text in, parts of the bytes out. Takes padded and unpadded text, nothing between the groups.
class Base64Reader {
 public:
  explicit Base64Reader(std::string_view text) : text_(text) {}
  // At most `max_bytes` more; empty at the end. INVALID_ARGUMENT when the text is not base64.
  absl::StatusOr<std::string> Next(size_t max_bytes);

 private:
  std::string_view text_;
};

}  // namespace bridge::epp
