// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/page_token.h — where a listing goes on. Opaque to callers, who hand it back; so it is
// checked like any input: well-formed, in range, and made for the same filter. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bridge {

// The upstream pages by number over a list that it makes afresh each time, newest first: what is
// created meanwhile pushes entries back, what is deleted pulls them forward. So a position is a
// page number to begin with, and the last entry that was seen to tell what is new.
struct PagePosition {
  int page = 1;
  int offset = 0;  // entries of that page that were answered already, or skipped
  int64_t total = -1;
  // Creation time of the last entry seen, and the ids (hashed) of those seen that share it.
  std::optional<absl::Time> last = {};
  std::vector<uint32_t> ties = {};
};

inline constexpr int kMaxPageNumber = 1'000'000;
inline constexpr size_t kMaxTies = 256;

// `filter` is everything that must be the same in the next request, in any unambiguous form.
std::string EncodePageToken(const PagePosition& position, std::string_view filter);

// INVALID_ARGUMENT for page_token.
absl::StatusOr<PagePosition> DecodePageToken(std::string_view token, std::string_view filter);

// FNV-1a, 32 bits.
uint32_t ShortHash(std::string_view text);

}  // namespace bridge
