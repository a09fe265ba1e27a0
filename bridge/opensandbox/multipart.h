// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/multipart.h — the body of execd's POST /files/upload around a file's bytes:
//   preamble() bytes... epilogue()
// The parts are named by position only and both carry a filename, which execd demands; the path
// travels in the JSON of the first part, so that no character of it can end a header. A pure value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bridge {

class MultipartUpload {
 public:
  // `mode`: POSIX bits; absent leaves it to the daemon. `owner`, `group`: account names; may be
  // empty.
  MultipartUpload(std::string_view path, std::optional<unsigned> mode, std::string_view owner = {},
                  std::string_view group = {});

  const std::string& content_type() const { return content_type_; }
  const std::string& preamble() const { return preamble_; }
  const std::string& epilogue() const { return epilogue_; }

 private:
  std::string content_type_;
  std::string preamble_;
  std::string epilogue_;
};

// execd's form of permission bits: a decimal number whose digits are the octal ones (0644 → 644).
// The set-uid, set-gid and sticky bits cannot be expressed and are dropped.
int ModeDigits(unsigned mode);
// The reverse; nothing for what holds a digit above 7.
std::optional<unsigned> ModeFromDigits(int digits);

}  // namespace bridge
