// SPDX-License-Identifier: Apache-2.0
//
// Part of file_script.h: what the scripts print.
#include <algorithm>
#include <charconv>

#include "bridge/base/error.h"
#include "bridge/base/utf8.h"
#include "bridge/opensandbox/file_script.h"

namespace bridge {
namespace {

template <class Int>
bool ParseNumber(std::string_view text, int base, Int* value) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return !text.empty() && error == std::errc() && at == text.data() + text.size();
}

// From st_mode.
void SetTypeAndMode(unsigned raw, FileInfo* info) {
  constexpr unsigned kTypeMask = 0170000, kDirectory = 0040000, kRegular = 0100000, kLink = 0120000;
  info->type = (raw & kTypeMask) == kDirectory ? FileType::kDirectory
               : (raw & kTypeMask) == kRegular ? FileType::kFile
               : (raw & kTypeMask) == kLink    ? FileType::kSymlink
                                               : FileType::kOther;
  info->type_known = true;
  info->mode = raw & 07777;
  info->special_bits_known = true;
}

// The text up to the next space, which is taken away too.
std::string_view NextWord(std::string_view* text) {
  const size_t space = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, space);
  text->remove_prefix(std::min(space + 1, text->size()));
  return word;
}

// stat's word for an account that has no name is no name.
std::string NameOr(std::string_view name, std::string_view number) {
  return std::string(name == "UNKNOWN" ? number : name);
}

absl::Status Undescribed() {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's stat described a file in a way that cannot be read");
}

}  // namespace

absl::StatusOr<FileInfo> ParseStatLines(const std::vector<std::string>& lines,
                                        std::string_view path) {
  unsigned raw = 0;
  int64_t seconds = 0;
  FileInfo info;
  info.path = std::string(path);
  const bool ok = lines.size() >= 7 && ParseNumber(lines[0], 16, &raw) &&
                  ParseNumber(lines[1], 10, &info.size) && ParseNumber(lines[2], 10, &seconds);
  if (!ok) return Undescribed();
  SetTypeAndMode(raw, &info);
  info.modified_at = absl::FromUnixSeconds(seconds);
  info.owner = NameOr(lines[3], lines[4]);
  info.group = NameOr(lines[5], lines[6]);
  // A target with a line break comes as several lines.
  for (size_t i = 7; i < lines.size(); ++i) {
    if (!info.symlink_target.empty()) info.symlink_target += '\n';
    info.symlink_target += lines[i];
  }
  return info;
}

absl::StatusOr<FileInfo> ParseListRecord(std::string_view record) {
  FileInfo info;
  unsigned raw = 0;
  int64_t seconds = 0;
  if (!record.starts_with("//")) return Undescribed();
  record.remove_prefix(2);
  const bool ok = ParseNumber(NextWord(&record), 16, &raw) &&
                  ParseNumber(NextWord(&record), 10, &info.size) &&
                  ParseNumber(NextWord(&record), 10, &seconds);
  const std::string_view owner = NextWord(&record);
  info.owner = NameOr(owner, NextWord(&record));
  const std::string_view group = NextWord(&record);
  info.group = NameOr(group, NextWord(&record));
  if (!ok || !record.starts_with("/")) return Undescribed();
  SetTypeAndMode(raw, &info);
  info.modified_at = absl::FromUnixSeconds(seconds);
  info.path = EscapeNonUtf8(record);
  if (info.path != record) info.path_bytes = std::string(record);
  return info;
}

}  // namespace bridge
