// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/paths.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <vector>

namespace bridge::local::execd {
namespace {

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || (c >= '0' && c <= '9'); }
// The shell's one-character parameters ($1, $?, $$ …). They are always empty here.
bool IsSpecial(char c) {
  return (c >= '0' && c <= '9') || std::string_view("*#$@!?-").find(c) != std::string_view::npos;
}

size_t NameLength(std::string_view text) {
  if (text.empty() || !IsNameStart(text[0])) return 0;
  size_t n = 1;
  while (n < text.size() && IsNameChar(text[n])) ++n;
  return n;
}

// Names that "$NAME" and "${NAME}" mention and nobody has set. The scan looks at every "$" by
// itself, so that "$$b" mentions b, as the real daemon has it.
std::vector<std::string> UndefinedNames(std::string_view path, const VariableLookup& lookup) {
  std::vector<std::string> names;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '$') continue;
    std::string_view rest = path.substr(i + 1);
    const bool braced = rest.starts_with('{');
    if (braced) rest.remove_prefix(1);
    const size_t length = NameLength(rest);
    if (length == 0 || (braced && !rest.substr(length).starts_with('}'))) continue;
    std::string name(rest.substr(0, length));
    if (!lookup(name) && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

// What follows a "$": the parameter's name and how many characters it takes. A name may be empty
// with characters taken (bad syntax, which disappears) or with none (the "$" stands for itself).
struct Parameter {
  std::string_view name;
  size_t taken;
};

Parameter ReadParameter(std::string_view rest) {
  if (rest.starts_with('{')) {
    if (rest.size() > 2 && IsSpecial(rest[1]) && rest[2] == '}') return {rest.substr(1, 1), 3};
    const size_t close = rest.find('}');
    if (close == std::string_view::npos) return {"", 1};  // "${" disappears
    if (close == 1) return {"", 2};                       // "${}" disappears
    return {rest.substr(1, close - 1), close + 1};
  }
  if (!rest.empty() && IsSpecial(rest[0])) return {rest.substr(0, 1), 1};
  const size_t length = NameLength(rest);
  return {rest.substr(0, length), length};
}

std::string ExpandVariables(std::string_view path, const VariableLookup& lookup) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '$' || i + 1 == path.size()) {
      out += path[i];
      continue;
    }
    const Parameter parameter = ReadParameter(path.substr(i + 1));
    if (!parameter.name.empty()) {
      out += lookup(parameter.name).value_or("");
    } else if (parameter.taken == 0) {
      out += '$';
    }
    i += parameter.taken;
  }
  return out;
}

}  // namespace

ExpandedPath ExpandPath(std::string_view path, const VariableLookup& lookup) {
  ExpandedPath result;
  const std::vector<std::string> undefined = UndefinedNames(path, lookup);
  if (!undefined.empty()) {
    result.error = "path references undefined environment variables: ";
    for (size_t i = 0; i < undefined.size(); ++i) {
      if (i > 0) result.error += ", ";
      result.error += undefined[i];
    }
    return result;
  }
  std::string expanded = ExpandVariables(path, lookup);
  if (expanded == "~" || expanded.starts_with("~/")) {
    expanded = lookup("HOME").value_or("/root") + expanded.substr(1);
  }
  result.path = AbsolutePath(expanded);
  return result;
}

std::string CleanPath(std::string_view path) {
  if (path.empty()) return ".";
  const bool rooted = path.front() == '/';
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view element = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (element.empty() || element == ".") continue;
    if (element != "..") {
      kept.push_back(element);
    } else if (!kept.empty() && kept.back() != "..") {
      kept.pop_back();
    } else if (!rooted) {
      kept.push_back(element);
    }
  }
  std::string out = rooted ? "/" : "";
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i > 0) out += '/';
    out += kept[i];
  }
  return out.empty() ? "." : out;
}

std::string AbsolutePath(std::string_view path) {
  if (path.starts_with('/')) return CleanPath(path);
  char buffer[PATH_MAX];
  std::string whole = getcwd(buffer, sizeof(buffer)) != nullptr ? buffer : "/";
  return CleanPath(whole.append("/").append(path));
}

std::string BaseName(std::string_view path) {
  if (path.empty()) return ".";
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == "/") return "/";
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string DirName(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return CleanPath(path.substr(0, slash + 1));
}

}  // namespace bridge::local::execd
