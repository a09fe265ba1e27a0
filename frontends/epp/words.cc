// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/words.h"

#include "absl/status/status.h"

namespace bridge::epp {
namespace {

constexpr std::string_view kBlank = " \t\r\n";
// What a word may hold unquoted.
constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
// What a backslash takes the meaning from inside double quotes; elsewhere it stays.
constexpr std::string_view kEscapable = "$`\"\\";

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool last = i + 1 == line.size();
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == '\'') {
      word += c;
    } else if (c == '\\') {
      if (last) return absl::InvalidArgumentError("ends with a backslash");
      const char next = line[++i];
      if (quote == '"' && kEscapable.find(next) == kEscapable.npos) word += c;
      word += next;
      in_word = true;
    } else if (quote == '"') {
      word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (kBlank.find(c) == kBlank.npos) {
      word += c;
      in_word = true;
    } else if (in_word) {
      words.push_back(std::move(word));
      word.clear();
      in_word = false;
    }
  }
  if (quote != 0) return absl::InvalidArgumentError("a quote is not closed");
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string JoinWords(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      if (c == '\'') {
        line += "'\\''";
      } else {
        line += c;
      }
    }
    line += '\'';
  }
  return line;
}

}  // namespace bridge::epp
