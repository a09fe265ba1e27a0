// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/glob.h"

#include <fnmatch.h>

#include "bridge/base/error.h"

namespace bridge {
namespace {

constexpr size_t kMaxPatternBytes = 1024;
// Each doubles the ways to match at worst.
constexpr int kMaxAnyLevels = 4;

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
  int any_levels = 0;
  for (const std::string& part : glob.parts_) {
    if (part.empty() || part == "." || part == "..") {
      return InvalidField(field, "must not have empty parts, \".\" or \"..\"");
    }
    if (part == "**") ++any_levels;
    if (HasOpenBracket(part)) return InvalidField(field, "has a \"[\" without its \"]\"");
  }
  if (any_levels > kMaxAnyLevels) return InvalidField(field, "must have at most 4 parts \"**\"");
  glob.name_only_ = glob.parts_.size() == 1 && any_levels == 0;
  return glob;
}

bool Glob::Matches(std::string_view path) const {
  const std::vector<std::string> names = SplitPath(path);
  return MatchesFrom(0, names, name_only_ ? names.size() - 1 : 0);
}

bool Glob::MatchesFrom(size_t part, const std::vector<std::string>& names, size_t name) const {
  if (part == parts_.size()) return name == names.size();
  if (parts_[part] == "**") {
    for (size_t skip = name; skip <= names.size(); ++skip) {
      if (MatchesFrom(part + 1, names, skip)) return true;
    }
    return false;
  }
  return name < names.size() && fnmatch(parts_[part].c_str(), names[name].c_str(), 0) == 0 &&
         MatchesFrom(part + 1, names, name + 1);
}

}  // namespace bridge
