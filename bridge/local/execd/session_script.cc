// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/session_script.h"

#include <array>

#include "bridge/base/shell.h"

namespace bridge::local::execd {
namespace {

constexpr size_t kMaxValueBytes = 8 * 1024;
constexpr std::string_view kDirectoryMark = "__PWD__:";
constexpr std::array<std::string_view, 10> kNotKept = {
    "PS1", "PS2", "PS3", "PS4", "PROMPT_COMMAND", "_", "SHLVL", "BASHOPTS", "SHELLOPTS", "OLDPWD"};

// The value behind `declare -x NAME=`, in one of the two forms in which bash writes it. Advances
// past it; nothing when it is neither.
std::optional<std::string> TakeValue(std::string_view& text);

std::optional<std::string> TakeDoubleQuoted(std::string_view& text) {
  std::string out;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    // Inside double quotes bash escapes just these.
    if (text[i] == '\\' && i + 1 < text.size() &&
        std::string_view("\"\\$`").find(text[i + 1]) != std::string_view::npos) {
      ++i;
    }
    out += text[i];
  }
  return std::nullopt;
}

// After a backslash in $'…': what it stands for. Advances past it.
std::string TakeAnsiEscape(std::string_view& text) {
  constexpr std::string_view kLetters = "abeEfnrtv\\'\"?";
  constexpr std::string_view kMeanings = "\a\b\033\033\f\n\r\t\v\\'\"?";
  const char c = text[0];
  if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
    text.remove_prefix(1);
    return std::string(1, kMeanings[i]);
  }
  size_t digits = 0;
  int value = 0;
  if (c >= '0' && c <= '7') {
    while (digits < 3 && digits < text.size() && text[digits] >= '0' && text[digits] <= '7') {
      value = value * 8 + (text[digits++] - '0');
    }
    text.remove_prefix(digits);
    return std::string(1, static_cast<char>(value));
  }
  text.remove_prefix(1);
  return std::string("\\") + c;
}

std::optional<std::string> TakeAnsiQuoted(std::string_view& text) {
  std::string out;
  std::string_view rest = text.substr(2);
  while (!rest.empty()) {
    if (rest[0] == '\'') {
      text = rest.substr(1);
      return out;
    }
    if (rest[0] == '\\' && rest.size() > 1) {
      rest.remove_prefix(1);
      out += TakeAnsiEscape(rest);
    } else {
      out += rest[0];
      rest.remove_prefix(1);
    }
  }
  return std::nullopt;
}

std::optional<std::string> TakeValue(std::string_view& text) {
  if (text.starts_with('"')) return TakeDoubleQuoted(text);
  if (text.starts_with("$'")) return TakeAnsiQuoted(text);
  return std::nullopt;
}

bool IsKept(std::string_view name, std::string_view value) {
  if (value.size() > kMaxValueBytes || name.starts_with("__execd_")) return false;
  for (const std::string_view other : kNotKept) {
    if (name == other) return false;
  }
  return true;
}

}  // namespace

std::string SessionScript(std::string_view command, std::string_view dump_path) {
  std::string out =
      "# One run of a session. Environment and directory are those\n"
      "# that the run before this one left; they came with exec.\n"
      "#\n"
      "# What this run exports, and where it ends up, is written to\n"
      "# a file for the next one. That happens only when the command\n"
      "# comes back: after `exit` nothing is kept.\n"
      "#\n"
      "# Functions, aliases, options and variables that are not\n"
      "# exported end with the run.\n"
      "#\n";
  out.append(command).append("\n__execd_code=$?\n");
  out.append("{ export -p; printf '\\n__PWD__:%s\\n' \"$(pwd)\"; } >");
  out.append(ShellQuote(dump_path)).append(" 2>/dev/null\n");
  return out + "exit \"$__execd_code\"\n";
}

std::optional<SessionState> ParseSessionDump(std::string_view dump) {
  SessionState state;
  while (!dump.empty()) {
    if (dump.starts_with('\n')) {
      dump.remove_prefix(1);
      continue;
    }
    if (dump.starts_with(kDirectoryMark)) {
      dump.remove_prefix(kDirectoryMark.size());
      if (!dump.ends_with('\n')) return std::nullopt;
      dump.remove_suffix(1);
      state.cwd = std::string(dump);
      return state;
    }
    constexpr std::string_view kDeclare = "declare -";
    if (!dump.starts_with(kDeclare)) return std::nullopt;
    const size_t space = dump.find(' ', kDeclare.size());
    if (space == std::string_view::npos) return std::nullopt;
    dump.remove_prefix(space + 1);
    const size_t end = dump.find_first_of("=\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = dump.substr(0, end);
    const bool has_value = dump[end] == '=';
    dump.remove_prefix(end + 1);
    if (!has_value) continue;  // exported and not set
    auto value = TakeValue(dump);
    if (!value) return std::nullopt;
    if (IsKept(name, *value)) state.env[std::string(name)] = std::move(*value);
  }
  return std::nullopt;
}

bool IsSessionMarker(std::string_view line) {
  return line.starts_with("__EXIT_CODE__:") || line.starts_with("__PWD__:") ||
         line == "__ENV_DUMP_START__" || line == "__ENV_DUMP_END__";
}

}  // namespace bridge::local::execd
