// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/glob.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd {
namespace {

// One character of `text` as a number; a byte that is not UTF-8 counts as one character.
uint32_t TakeRune(std::string_view& text) {
  const int length = Utf8SequenceLength(text);
  const auto first = static_cast<unsigned char>(text[0]);
  if (length <= 1) {
    text.remove_prefix(1);
    return length == 1 ? first : 0x110000u + first;  // never equal to a real character
  }
  uint32_t rune = first & (0xff >> (length + 1));
  for (int i = 1; i < length; ++i) rune = (rune << 6) | (text[i] & 0x3f);
  text.remove_prefix(length);
  return rune;
}

struct Token {
  enum class Kind { kStar, kAny, kOne, kClass } kind;
  uint32_t rune = 0;
  bool negated = false;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
};

// A character inside brackets; nothing when the pattern ends or a bare "-" or "]" stands there.
std::optional<uint32_t> ClassRune(std::string_view& pattern) {
  if (pattern.empty() || pattern[0] == '-' || pattern[0] == ']') return std::nullopt;
  if (pattern[0] == '\\') {
    pattern.remove_prefix(1);
    if (pattern.empty()) return std::nullopt;
  }
  if (Utf8SequenceLength(pattern) == 0) return std::nullopt;
  const uint32_t rune = TakeRune(pattern);
  // Something must follow: at least the closing bracket.
  return pattern.empty() ? std::nullopt : std::optional<uint32_t>(rune);
}

std::optional<Token> TakeClass(std::string_view& pattern) {
  Token token{Token::Kind::kClass};
  if (pattern.starts_with('^')) {
    token.negated = true;
    pattern.remove_prefix(1);
  }
  while (true) {
    if (pattern.starts_with(']') && !token.ranges.empty()) {
      pattern.remove_prefix(1);
      return token;
    }
    const auto low = ClassRune(pattern);
    if (!low) return std::nullopt;
    uint32_t high = *low;
    if (pattern.starts_with('-')) {
      pattern.remove_prefix(1);
      const auto end = ClassRune(pattern);
      if (!end) return std::nullopt;
      high = *end;
    }
    token.ranges.emplace_back(*low, high);
  }
}

std::optional<std::vector<Token>> Compile(std::string_view pattern) {
  std::vector<Token> tokens;
  while (!pattern.empty()) {
    const char c = pattern.front();
    if (c == '*' || c == '?') {
      pattern.remove_prefix(1);
      tokens.push_back({c == '*' ? Token::Kind::kStar : Token::Kind::kAny});
    } else if (c == '[') {
      pattern.remove_prefix(1);
      auto token = TakeClass(pattern);
      if (!token) return std::nullopt;
      tokens.push_back(std::move(*token));
    } else {
      if (c == '\\') {
        pattern.remove_prefix(1);
        if (pattern.empty()) return std::nullopt;
      }
      tokens.push_back({Token::Kind::kOne, TakeRune(pattern)});
    }
  }
  return tokens;
}

bool MatchOne(const Token& token, uint32_t rune) {
  switch (token.kind) {
    case Token::Kind::kAny:
      return rune != '/';
    case Token::Kind::kOne:
      return rune == token.rune;
    case Token::Kind::kClass: {
      bool inside = false;
      for (const auto& [low, high] : token.ranges) inside |= rune >= low && rune <= high;
      return inside != token.negated;
    }
    case Token::Kind::kStar:
      return false;
  }
  return false;
}

}  // namespace

bool IsGlob(std::string_view pattern) { return Compile(pattern).has_value(); }

GlobMatch MatchGlob(std::string_view pattern, std::string_view name) {
  const auto tokens = Compile(pattern);
  if (!tokens) return GlobMatch::kBadPattern;
  std::vector<uint32_t> runes;
  while (!name.empty()) runes.push_back(TakeRune(name));
  // The usual two pointers: after a mismatch go back to the last star and let it take one more.
  size_t t = 0, r = 0, star = SIZE_MAX, star_rune = 0;
  while (r < runes.size()) {
    if (t < tokens->size() && (*tokens)[t].kind == Token::Kind::kStar) {
      star = t++;
      star_rune = r;
    } else if (t < tokens->size() && MatchOne((*tokens)[t], runes[r])) {
      ++t;
      ++r;
    } else if (star != SIZE_MAX && runes[star_rune] != '/') {
      t = star + 1;
      r = ++star_rune;
    } else {
      return GlobMatch::kNo;
    }
  }
  while (t < tokens->size() && (*tokens)[t].kind == Token::Kind::kStar) ++t;
  return t == tokens->size() ? GlobMatch::kYes : GlobMatch::kNo;
}

}  // namespace bridge::local::execd
