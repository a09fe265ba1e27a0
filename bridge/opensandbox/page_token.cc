// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/page_token.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "fmt/format.h"

namespace bridge {
namespace {

constexpr std::string_view kVersion = "1";
constexpr size_t kFields = 7;
constexpr size_t kMaxTokenBytes = 8192;

template <class Int>
bool Parse(std::string_view text, Int min, Int max, Int* value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return error == std::errc() && end == text.data() + text.size() && *value >= min && *value <= max;
}

absl::Status Malformed() { return InvalidField("page_token", "is none that this bridge made"); }

std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace

uint32_t ShortHash(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string EncodePageToken(const PagePosition& position, std::string_view filter) {
  std::string ties;
  for (size_t i = 0; i < std::min(position.ties.size(), kMaxTies); ++i) {
    ties += fmt::format("{:08x}", position.ties[i]);
  }
  const std::string last =
      position.last ? std::to_string(absl::ToUnixMicros(*position.last)) : std::string();
  const std::string text = fmt::format("{}.{:x}.{}.{}.{}.{}.{}", kVersion, ShortHash(filter),
                                       position.page, position.offset, position.total, last, ties);
  return absl::WebSafeBase64Escape(absl::string_view(text));
}

absl::StatusOr<PagePosition> DecodePageToken(std::string_view token, std::string_view filter) {
  std::string text;
  if (token.size() > kMaxTokenBytes ||
      !absl::WebSafeBase64Unescape(absl::string_view(token.data(), token.size()), &text)) {
    return Malformed();
  }
  const std::vector<absl::string_view> fields = absl::StrSplit(absl::string_view(text), '.');
  if (fields.size() != kFields || View(fields[0]) != kVersion) return Malformed();
  uint32_t made_for = 0;
  PagePosition position;
  if (!Parse<uint32_t>(View(fields[1]), 0, UINT32_MAX, &made_for, 16) ||
      !Parse(View(fields[2]), 1, kMaxPageNumber, &position.page) ||
      !Parse(View(fields[3]), 0, 1'000'000, &position.offset) ||
      !Parse<int64_t>(View(fields[4]), -1, INT64_MAX, &position.total)) {
    return Malformed();
  }
  if (!fields[5].empty()) {
    int64_t micros = 0;
    // Years 0 to 9999.
    if (!Parse<int64_t>(View(fields[5]), -62'167'219'200'000'000, 253'402'300'799'000'000,
                        &micros)) {
      return Malformed();
    }
    position.last = absl::FromUnixMicros(micros);
  }
  const std::string_view ties = View(fields[6]);
  if (ties.size() % 8 != 0 || ties.size() / 8 > kMaxTies) return Malformed();
  for (size_t i = 0; i < ties.size(); i += 8) {
    uint32_t tie = 0;
    if (!Parse<uint32_t>(ties.substr(i, 8), 0, UINT32_MAX, &tie, 16)) return Malformed();
    position.ties.push_back(tie);
  }
  if (made_for != ShortHash(filter)) {
    return InvalidField("page_token", "belongs to a request with another filter or page_size");
  }
  return position;
}

}  // namespace bridge
