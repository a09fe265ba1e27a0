// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/go_json.h"

#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd {
namespace {

// Deeper nesting is refused: threads have small stacks, and no request needs more than three
// levels.
constexpr int kMaxDepth = 200;

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// A character between single quotes, as Go's syntax errors show it.
std::string QuoteChar(char c) {
  if (c == '\'') return "'\\''";
  if (c == '"') return "'\"'";
  const std::string quoted = GoQuote(std::string_view(&c, 1));
  return "'" + quoted.substr(1, quoted.size() - 2) + "'";
}

class Parser {
 public:
  explicit Parser(std::string_view input) : input_(input) {}

  JsonParse Run() {
    JsonParse result;
    SkipSpace();
    if (AtEnd()) {
      result.error = "EOF";
      return result;
    }
    if (!Value(result.value, 0)) result.error = error_;
    result.consumed = pos_;
    return result;
  }

 private:
  bool AtEnd() const { return pos_ >= input_.size(); }
  char Peek() const { return input_[pos_]; }

  void SkipSpace() {
    while (!AtEnd() && (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r')) {
      ++pos_;
    }
  }

  bool Fail(std::string_view context) {
    error_ = AtEnd() ? "unexpected EOF"
                     : "invalid character " + QuoteChar(Peek()) + " " + std::string(context);
    return false;
  }

  bool Value(JsonValue& out, int depth) {
    if (depth > kMaxDepth) {
      error_ = "exceeded max depth";
      return false;
    }
    SkipSpace();
    if (AtEnd()) return Fail("");
    switch (Peek()) {
      case '{':
        return Object(out, depth);
      case '[':
        return Array(out, depth);
      case '"':
        out.kind = JsonValue::Kind::kString;
        return String(out.text);
      case 't':
        out.kind = JsonValue::Kind::kBool;
        out.boolean = true;
        return Literal("true");
      case 'f':
        out.kind = JsonValue::Kind::kBool;
        return Literal("false");
      case 'n':
        out.kind = JsonValue::Kind::kNull;
        return Literal("null");
      default:
        out.kind = JsonValue::Kind::kNumber;
        return Number(out.text);
    }
  }

  bool Literal(std::string_view word) {
    ++pos_;
    for (size_t i = 1; i < word.size(); ++i, ++pos_) {
      if (AtEnd() || Peek() != word[i]) {
        return Fail("in literal " + std::string(word) + " (expecting " + QuoteChar(word[i]) + ")");
      }
    }
    return true;
  }

  bool Digits() {
    const size_t begin = pos_;
    while (!AtEnd() && Peek() >= '0' && Peek() <= '9') ++pos_;
    return pos_ > begin;
  }

  bool Number(std::string& out) {
    const size_t begin = pos_;
    if (Peek() == '-') {
      ++pos_;
      if (AtEnd() || Peek() < '0' || Peek() > '9') return Fail("in numeric literal");
    } else if (Peek() < '0' || Peek() > '9') {
      return Fail("looking for beginning of value");
    }
    if (Peek() == '0') {
      ++pos_;
    } else {
      Digits();
    }
    if (!AtEnd() && Peek() == '.') {
      ++pos_;
      if (!Digits()) return Fail("after decimal point in numeric literal");
    }
    if (!AtEnd() && (Peek() == 'e' || Peek() == 'E')) {
      ++pos_;
      if (!AtEnd() && (Peek() == '+' || Peek() == '-')) ++pos_;
      if (!Digits()) return Fail("in exponent of numeric literal");
    }
    out = std::string(input_.substr(begin, pos_ - begin));
    return true;
  }

  bool Hex4(uint32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++pos_) {
      if (AtEnd()) return Fail("");
      const char c = Peek();
      const int lower = c | 0x20;
      if (c >= '0' && c <= '9') {
        code = code * 16 + (c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        code = code * 16 + (lower - 'a' + 10);
      } else {
        return Fail("in \\u hexadecimal character escape");
      }
    }
    return true;
  }

  // After "\u". Two halves of a pair make one character; a half alone becomes U+FFFD.
  bool UnicodeEscape(std::string& out) {
    uint32_t code = 0;
    if (!Hex4(code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && input_.substr(pos_, 2) == "\\u") {
      const size_t before = pos_;
      pos_ += 2;
      uint32_t low = 0;
      if (!Hex4(low)) return false;
      if (low >= 0xdc00 && low < 0xe000) {
        AppendUtf8(out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        return true;
      }
      pos_ = before;
    }
    AppendUtf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    return true;
  }

  bool Escape(std::string& out) {
    ++pos_;
    if (AtEnd()) return Fail("");
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t i = kLetters.find(Peek()); i != std::string_view::npos) {
      out += kMeanings[i];
      ++pos_;
      return true;
    }
    if (Peek() != 'u') return Fail("in string escape code");
    ++pos_;
    return UnicodeEscape(out);
  }

  // How many ASCII characters that stand for themselves come next.
  size_t PlainRun() const {
    size_t n = 0;
    while (pos_ + n < input_.size()) {
      const auto c = static_cast<unsigned char>(input_[pos_ + n]);
      if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') break;
      ++n;
    }
    return n;
  }

  bool String(std::string& out) {
    ++pos_;
    while (!AtEnd()) {
      const size_t run = PlainRun();
      out.append(input_.substr(pos_, run));
      pos_ += run;
      if (AtEnd()) break;
      const auto c = static_cast<unsigned char>(Peek());
      if (c == '"') {
        ++pos_;
        return true;
      }
      if (c < 0x20) return Fail("in string literal");
      if (c == '\\') {
        if (!Escape(out)) return false;
        continue;
      }
      const int length = Utf8SequenceLength(input_.substr(pos_));
      if (length == 0) {
        out += "\xef\xbf\xbd";
        ++pos_;
      } else {
        out.append(input_.substr(pos_, length));
        pos_ += length;
      }
    }
    return Fail("");
  }

  bool Array(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kArray;
    ++pos_;
    SkipSpace();
    if (!AtEnd() && Peek() == ']') {
      ++pos_;
      return true;
    }
    while (true) {
      out.items.emplace_back();
      if (!Value(out.items.back(), depth + 1)) return false;
      SkipSpace();
      if (AtEnd()) return Fail("");
      if (Peek() != ',' && Peek() != ']') return Fail("after array element");
      if (input_[pos_++] == ']') return true;
    }
  }

  bool Object(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kObject;
    ++pos_;
    SkipSpace();
    if (!AtEnd() && Peek() == '}') {
      ++pos_;
      return true;
    }
    while (true) {
      SkipSpace();
      if (AtEnd() || Peek() != '"') return Fail("looking for beginning of object key string");
      out.members.emplace_back();
      auto& [name, value] = out.members.back();
      if (!String(name)) return false;
      SkipSpace();
      if (AtEnd() || Peek() != ':') return Fail("after object key");
      ++pos_;
      if (!Value(value, depth + 1)) return false;
      SkipSpace();
      if (AtEnd()) return Fail("");
      if (Peek() != ',' && Peek() != '}') return Fail("after object key:value pair");
      if (input_[pos_++] == '}') return true;
    }
  }

  const std::string_view input_;
  size_t pos_ = 0;
  std::string error_;
};

}  // namespace

std::string_view JsonValue::KindName() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "bool";
    case Kind::kNumber:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
  }
  return "";
}

JsonParse ParseGoJson(std::string_view input) { return Parser(input).Run(); }

}  // namespace bridge::local::execd
