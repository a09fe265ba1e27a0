// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/byte_range.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace bridge::local::execd {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> Position(std::string_view text) {
  int64_t out = 0;
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

// One element of the list, already known not to be empty.
ByteRange ParseOne(std::string_view element, int64_t size) {
  const ByteRange malformed{ByteRange::Kind::kMalformed};
  const size_t dash = element.find('-');
  if (dash == std::string_view::npos) return malformed;
  const std::string_view first = Trim(element.substr(0, dash));
  const std::string_view last = Trim(element.substr(dash + 1));
  if (first.empty()) {
    const auto suffix = Position(last);
    if (!suffix) return malformed;
    const int64_t length = std::min(*suffix, size);
    return {ByteRange::Kind::kPart, size - length, length};
  }
  const auto start = Position(first);
  if (!start) return malformed;
  if (*start >= size) return {ByteRange::Kind::kNoOverlap};
  if (last.empty()) return {ByteRange::Kind::kPart, *start, size - *start};
  const auto end = Position(last);
  if (!end || *end < *start) return malformed;
  return {ByteRange::Kind::kPart, *start, std::min(*end, size - 1) - *start + 1};
}

}  // namespace

ByteRange ParseByteRange(std::string_view header, int64_t file_size) {
  constexpr std::string_view kUnit = "bytes=";
  if (header.empty()) return {};
  if (!header.starts_with(kUnit)) return {ByteRange::Kind::kMalformed};
  header.remove_prefix(kUnit.size());
  ByteRange first;
  bool no_overlap = false;
  // Every element is looked at, since a malformed one spoils the whole header.
  while (true) {
    const size_t comma = header.find(',');
    if (const std::string_view element = Trim(header.substr(0, comma)); !element.empty()) {
      const ByteRange range = ParseOne(element, file_size);
      if (range.kind == ByteRange::Kind::kMalformed) return range;
      if (range.kind == ByteRange::Kind::kNoOverlap) no_overlap = true;
      if (range.kind == ByteRange::Kind::kPart && first.kind == ByteRange::Kind::kNone) {
        first = range;
      }
    }
    if (comma == std::string_view::npos) break;
    header.remove_prefix(comma + 1);
  }
  if (first.kind == ByteRange::Kind::kNone && no_overlap) first.kind = ByteRange::Kind::kNoOverlap;
  // Of an empty file everything is served, whatever was asked for.
  if (file_size == 0) return {};
  return first;
}

}  // namespace bridge::local::execd
