// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/utf8.h"

namespace bridge {
namespace {

// Bytes of the valid sequence at the front of `text` (not empty); 0 when it is not valid.
size_t SequenceAt(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  // The range of the second byte excludes overlong forms, surrogates and what is above U+10FFFF
  // (RFC 3629, section 4).
  size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

template <class AppendBad>
std::string Repaired(std::string_view text, AppendBad append_bad) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t n = SequenceAt(text);
    if (n == 0) {
      append_bad(result, static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    } else {
      result += text.substr(0, n);
      text.remove_prefix(n);
    }
  }
  return result;
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = SequenceAt(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string ToValidUtf8(std::string_view text) {
  return Repaired(text, [](std::string& out, unsigned char) { out += "\xEF\xBF\xBD"; });
}

std::string EscapeNonUtf8(std::string_view text) {
  return Repaired(text, [](std::string& out, unsigned char byte) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  });
}

std::string_view Utf8Prefix(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace bridge
