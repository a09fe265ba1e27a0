// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/glob.h"

#include <fnmatch.h>

#include <optional>

#include "bridge/base/error.h"

namespace bridge {
namespace {

constexpr size_t kMaxPatternBytes = 1024;
constexpr std::string_view kAnyLevels = "**";

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

// "[" without "]": fnmatch would take it for itself, and nobody means that.
bool HasOpenBracket(const std::string& part) {
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\') {
      ++i;
    } else if (part[i] == '[') {
      const size_t close = part.find(']', i + 2);
      if (close == std::string::npos) return true;
      i = close;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Glob> Glob::Parse(std::string_view field, std::string_view pattern) {
  if (pattern.empty()) return InvalidField(field, "must not be empty");
  if (pattern.size() > kMaxPatternBytes) return InvalidField(field, "must be at most 1024 bytes");
  if (pattern.find('\0') != std::string_view::npos) return InvalidField(field, "must not hold NUL");
  if (pattern[0] == '/') return InvalidField(field, "must be relative to the path");
  Glob glob;
  glob.parts_ = SplitPath(pattern);
  for (const std::string& part : glob.parts_) {
    if (part.empty() || part == "." || part == "..") {
      return InvalidField(field, "must not have empty parts, \".\" or \"..\"");
    }
    if (HasOpenBracket(part)) return InvalidField(field, "has a \"[\" without its \"]\"");
  }
  glob.name_only_ = glob.parts_.size() == 1 && glob.parts_[0] != kAnyLevels;
  return glob;
}

bool Glob::Matches(std::string_view path) const {
  const std::vector<std::string> names = SplitPath(path);
  size_t name = name_only_ ? names.size() - 1 : 0;
  size_t part = 0;
  // Only the last "**" is ever tried with more levels: what those before it took can stay. So a
  // deep tree cannot make this long.
  std::optional<size_t> any_part;
  size_t any_name = 0;
  while (name < names.size()) {
    if (part < parts_.size() && parts_[part] == kAnyLevels) {
      any_part = part++;
      any_name = name;
    } else if (part < parts_.size() && fnmatch(parts_[part].c_str(), names[name].c_str(), 0) == 0) {
      ++part;
      ++name;
    } else if (any_part) {
      part = *any_part + 1;
      name = ++any_name;
    } else {
      return false;
    }
  }
  while (part < parts_.size() && parts_[part] == kAnyLevels) ++part;
  return part == parts_.size();
}

}  // namespace bridge
