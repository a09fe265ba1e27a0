// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_id.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bridge/base/error.h"

namespace bridge {
namespace {

constexpr char kSeparator = '.';
constexpr size_t kMaxPart = 64;

char RouteLetter(ExecId::Route route) {
  switch (route) {
    case ExecId::Route::kOwn:
      return 'o';
    case ExecId::Route::kFiles:
      return 'f';
    case ExecId::Route::kLines:
      return 'l';
  }
  return 'o';
}

// What may stand in a path of the daemon's routes and in a file name, and cannot be a separator.
bool IsPart(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPart &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-';
         });
}

// The daemon knows the command alone: of an id with another nonce or timeout it would tell another
// end. FNV-1a; meant against mistakes, since whoever may ask about a sandbox may ask all.
std::string CheckDigits(std::string_view text) {
  uint32_t hash = 2'166'136'261;
  for (const char c : text) {
    hash = static_cast<uint32_t>((hash ^ static_cast<unsigned char>(c)) * uint64_t{16'777'619});
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad8));
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(kSeparator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace

// ROUTE . COMMAND . TIMEOUT_MS . NONCE . CHECK, where the third and the fourth may be "0".
std::string FormatExecId(const ExecId& id) {
  const bool timed = id.timeout != absl::InfiniteDuration();
  const std::string parts = std::string(1, RouteLetter(id.route)) + kSeparator + id.command_id +
                            kSeparator +
                            std::to_string(timed ? absl::ToInt64Milliseconds(id.timeout) : 0) +
                            kSeparator + (id.nonce.empty() ? "0" : id.nonce);
  return parts + kSeparator + CheckDigits(parts);
}

absl::StatusOr<ExecId> ParseExecId(std::string_view text) {
  const absl::Status unknown =
      MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "no exec of this id");
  const size_t checked = text.rfind(kSeparator);
  if (checked == std::string_view::npos) return unknown;
  if (text.substr(checked + 1) != CheckDigits(text.substr(0, checked))) return unknown;
  const std::vector<std::string_view> parts = Split(text.substr(0, checked));
  if (parts.size() != 4 || parts[0].size() != 1) return unknown;
  if (!std::all_of(parts.begin(), parts.end(), IsPart)) return unknown;
  ExecId id;
  switch (parts[0][0]) {
    case 'o':
      id.route = ExecId::Route::kOwn;
      break;
    case 'f':
      id.route = ExecId::Route::kFiles;
      break;
    case 'l':
      id.route = ExecId::Route::kLines;
      break;
    default:
      return unknown;
  }
  id.command_id = std::string(parts[1]);
  int64_t timeout_ms = 0;
  const std::string_view limit = parts[2];
  const auto [at, error] = std::from_chars(limit.data(), limit.data() + limit.size(), timeout_ms);
  if (error != std::errc() || at != limit.data() + limit.size() || timeout_ms < 0) return unknown;
  if (timeout_ms > 0) id.timeout = absl::Milliseconds(timeout_ms);
  if (parts[3] != "0") id.nonce = std::string(parts[3]);
  if ((id.route == ExecId::Route::kFiles) != !id.nonce.empty()) return unknown;
  return id;
}

}  // namespace bridge
