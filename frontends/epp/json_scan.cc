// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/json_scan.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace bridge::epp {
namespace {

constexpr std::string_view kBlank = " \t\r\n";
constexpr std::string_view kEndOfToken = ",:]}[{\" \t\r\n";
// Longer ids are somebody's mistake; they are not kept.
constexpr size_t kMaxIdBytes = 256;

struct Edit {
  size_t pos;
  size_t length;
  std::string text;
};

// Value of the escape `\uXXXX` at `pos`, or -1.
int EscapeAt(std::string_view text, size_t pos) {
  if (text.size() < pos + 6 || text[pos] != '\\' || text[pos + 1] != 'u') return -1;
  unsigned value = 0;
  const char* end = text.data() + pos + 6;
  const auto [ptr, ec] = std::from_chars(text.data() + pos + 2, end, value, 16);
  return ec == std::errc() && ptr == end ? static_cast<int>(value) : -1;
}

bool IsHigh(int unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool IsLow(int unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

// Would a parser that keeps doubles choke on this number?
bool IsBeyondDouble(std::string_view token) {
  if (token.size() < 5) return false;
  double value = 0;
  const auto [ptr, ec] = std::from_chars(token.data(), token.data() + token.size(), value);
  // Too small is out of range as well, and is zero to everybody: only a large one needs help. The
  // sign of the exponent tells, since a plain integer or fraction cannot be too small to read.
  return ec == std::errc::result_out_of_range && ptr == token.data() + token.size() &&
         token.find("e-") == token.npos && token.find("E-") == token.npos;
}

// Takes the digits at the front off; false if there are none.
bool TakeDigits(std::string_view* text) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  text->remove_prefix(digits);
  return digits > 0;
}

bool IsJsonNumber(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  if (token.starts_with('0')) {
    token.remove_prefix(1);
  } else if (!TakeDigits(&token)) {
    return false;
  }
  if (token.starts_with('.')) {
    token.remove_prefix(1);
    if (!TakeDigits(&token)) return false;
  }
  if (token.starts_with('e') || token.starts_with('E')) {
    token.remove_prefix(1);
    if (token.starts_with('+') || token.starts_with('-')) token.remove_prefix(1);
    if (!TakeDigits(&token)) return false;
  }
  return token.empty();
}

// An id goes into the answer as it is, so it must not break the answer.
bool IsIdToken(std::string_view token) {
  return token.size() <= kMaxIdBytes && (token == "null" || IsJsonNumber(token));
}

// `token` has its quotes.
bool IsIdString(std::string_view token) {
  if (token.size() > kMaxIdBytes) return false;
  for (size_t i = 0; i < token.size(); ++i) {
    const char c = token[i];
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) return false;
    if (c != '\\') continue;
    if (EscapeAt(token, i) < 0 && std::string_view("\"\\/bfnrt").find(token[i + 1]) == token.npos) {
      return false;
    }
    ++i;
  }
  return true;
}

// `token` has its quotes.
bool IsPlain(std::string_view token) {
  return std::all_of(token.begin() + 1, token.end() - 1,
                     [](char c) { return c >= 0x20 && c <= 0x7E && c != '\\'; });
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void Run() {
    while (pos_ < text_.size()) Step();
  }

  JsonScan result;
  std::vector<Edit> edits;

 private:
  void Step() {
    const char c = text_[pos_];
    if (c == '"') return String();
    if (kBlank.find(c) != kBlank.npos) {
      ++pos_;
      return;
    }
    if (c == '{' || c == '[') {
      if (++depth_ > result.depth) result.depth = depth_;
      if (depth_ <= 2) at_key_ = c == '{';
      if (depth_ == 2) in_params_ = c == '{' && key_ == "\"params\"";
      value_is_id_ = false;
    } else if (c == '}' || c == ']') {
      // What follows the first value of a line is another one's.
      if (--depth_ == 0) ended_ = true;
      at_key_ = false;
    } else if (depth_ <= 2 && c == ':') {
      at_key_ = false;
    } else if (depth_ <= 2 && c == ',') {
      at_key_ = true;
      value_is_id_ = false;
    } else if (c != ':' && c != ',') {
      return Token();
    }
    ++pos_;
  }

  void String() {
    const size_t begin = pos_;
    SkipString();
    const std::string_view token = text_.substr(begin, pos_ - begin);
    if (depth_ > 2 || ended_) return;
    if (at_key_) {
      key_ = token;
      value_is_id_ = depth_ == 1 && token == "\"id\"";
    } else if (depth_ == 2) {
      if (in_params_) Param(begin, token);
    } else if (std::exchange(value_is_id_, false) && closed_ && IsIdString(token)) {
      result.id = token;
    }
  }

  void Param(size_t begin, std::string_view token) {
    if (token.size() < kLongTextBytes + 2 || result.long_text.size > 0 || !closed_) return;
    if (!IsPlain(token) || !IsPlain(key_)) return;
    result.long_text = {std::string(key_.substr(1, key_.size() - 2)), begin + 1, token.size() - 2};
  }

  // From one quote to behind the other. Long strings have no escapes as a rule: memchr's speed.
  void SkipString() {
    ++pos_;
    closed_ = false;
    while (pos_ < text_.size()) {
      const char* from = text_.data() + pos_;
      const void* found = std::memchr(from, '"', text_.size() - pos_);
      const size_t quote = found == nullptr ? text_.size() : pos_ + Distance(from, found);
      const void* escape = std::memchr(from, '\\', quote - pos_);
      if (escape == nullptr) {
        closed_ = found != nullptr;
        pos_ = closed_ ? quote + 1 : quote;
        return;
      }
      pos_ += Distance(from, escape);
      Escape();
    }
    pos_ = text_.size();
  }

  void Escape() {
    const int unit = EscapeAt(text_, pos_);
    if (IsHigh(unit) && IsLow(EscapeAt(text_, pos_ + 6))) {
      pos_ += 12;
    } else if (IsHigh(unit) || IsLow(unit)) {
      edits.push_back({pos_, 6, "\\u0000"});
      pos_ += 6;
    } else {
      pos_ += 2;
    }
  }

  void Token() {
    const size_t begin = pos_;
    pos_ = text_.find_first_of(kEndOfToken, pos_);
    const bool whole = pos_ != text_.npos;
    if (!whole) pos_ = text_.size();
    const std::string_view token = text_.substr(begin, pos_ - begin);
    if (depth_ == 1 && !ended_ && std::exchange(value_is_id_, false) && whole && IsIdToken(token)) {
      result.id = token;
    }
    if (token == "NaN" || token == "Infinity" || token == "-Infinity") {
      edits.push_back({begin, token.size(), "\"\\u0000" + std::string(token) + "\""});
    } else if (IsBeyondDouble(token)) {
      const std::string infinity = token[0] == '-' ? "-Infinity" : "Infinity";
      edits.push_back({begin, token.size(), "\"\\u0000" + infinity + "\""});
    }
  }

  static size_t Distance(const char* from, const void* to) {
    return static_cast<size_t>(static_cast<const char*>(to) - from);
  }

  const std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0;
  std::string_view key_;      // the last one at depth 1 or 2, with its quotes
  bool at_key_ = false;       // at depth 1 or 2: a key comes next
  bool in_params_ = false;    // at depth 2: in the object "params"
  bool value_is_id_ = false;  // at depth 1: the last key was "id"
  bool closed_ = false;       // the last string had its closing quote
  bool ended_ = false;        // the first value is over
};

}  // namespace

JsonScan ScanJson(std::string* text) {
  Scanner scanner(*text);
  scanner.Run();
  if (scanner.edits.empty()) return std::move(scanner.result);
  std::string rewritten;
  rewritten.reserve(text->size() + 16 * scanner.edits.size());
  size_t done = 0;
  for (const Edit& edit : scanner.edits) {
    rewritten.append(*text, done, edit.pos - done).append(edit.text);
    done = edit.pos + edit.length;
  }
  rewritten.append(*text, done);
  *text = std::move(rewritten);
  scanner.result.changed = true;
  scanner.result.long_text = {};
  return std::move(scanner.result);
}

std::string ScanId(std::string_view beginning) {
  Scanner scanner(beginning);
  scanner.Run();
  return std::move(scanner.result.id);
}

}  // namespace bridge::epp
