// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/json_body.h"

#include <algorithm>
#include <cctype>

#include "bridge/base/utf8.h"
#include "bridge/local/http/types.h"

namespace bridge::local::api {
namespace {

constexpr int kMaxDepth = 900;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// Walks a JSON text as Python's json.decoder does. Stops at the first fault.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  JsonScan Run() {
    SkipSpace();
    if (Value(0)) {
      SkipSpace();
      if (at_ < text_.size()) Fail("Extra data", at_);
    }
    return std::move(scan_);
  }

 private:
  bool Fail(const char* message, size_t byte) {
    // Positions are characters: bytes that continue a UTF-8 sequence do not count.
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    const auto prefix = text_.substr(0, byte);
    const size_t extra =
        static_cast<size_t>(std::count_if(prefix.begin(), prefix.end(), continues));
    scan_.fault = JsonFault{message, byte - extra};
    return false;
  }

  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool Value(int depth) {
    if (depth > kMaxDepth) {
      scan_.too_deep = true;
      return false;
    }
    switch (Peek()) {
      case '"':
        return String();
      case '{':
        return Object(depth);
      case '[':
        return Array(depth);
      default:
        break;
    }
    if (Take("null") || Take("true") || Take("false")) return true;
    if (Take("NaN") || Take("Infinity") || Take("-Infinity")) {
      scan_.has_nan = true;
      return true;
    }
    return Number();
  }

  bool Number() {
    const size_t start = at_;
    size_t at = at_;
    const auto digits = [this, &at] {
      const size_t from = at;
      while (at < text_.size() && IsDigit(text_[at])) ++at;
      return at > from;
    };
    if (at < text_.size() && text_[at] == '-') ++at;
    if (at < text_.size() && text_[at] == '0') {
      ++at;
    } else if (!digits()) {
      return Fail("Expecting value", start);
    }
    // A fraction or exponent that is not whole is left for the caller to stumble over.
    size_t good = at;
    if (at < text_.size() && text_[at] == '.') {
      ++at;
      if (digits()) good = at;
    }
    at = good;
    if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
      ++at;
      if (at < text_.size() && (text_[at] == '+' || text_[at] == '-')) ++at;
      if (digits()) good = at;
    }
    at_ = good;
    return true;
  }

  bool String() {
    const size_t start = at_++;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return Fail("Invalid control character at", at_);
      if (c != '\\') {
        ++at_;
        continue;
      }
      if (at_ + 1 >= text_.size()) break;
      const char escape = text_[at_ + 1];
      if (escape == 'u') {
        const std::string_view hex = text_.substr(at_ + 2, 4);
        if (hex.size() < 4 || !std::all_of(hex.begin(), hex.end(), IsHex)) {
          return Fail("Invalid \\uXXXX escape", at_ + 1);
        }
        at_ += 6;
      } else if (std::string_view("\"\\/bfnrt").find(escape) != std::string_view::npos) {
        at_ += 2;
      } else {
        return Fail("Invalid \\escape", at_);
      }
    }
    return Fail("Unterminated string starting at", start);
  }

  bool Object(int depth) {
    ++at_;
    SkipSpace();
    if (Take("}")) return true;
    while (true) {
      if (Peek() != '"') return Fail("Expecting property name enclosed in double quotes", at_);
      if (!String()) return false;
      SkipSpace();
      if (!Take(":")) return Fail("Expecting ':' delimiter", at_);
      SkipSpace();
      if (!Value(depth + 1)) return false;
      SkipSpace();
      if (Take("}")) return true;
      if (!Take(",")) return Fail("Expecting ',' delimiter", at_);
      SkipSpace();
    }
  }

  bool Array(int depth) {
    ++at_;
    SkipSpace();
    if (Take("]")) return true;
    while (true) {
      if (!Value(depth + 1)) return false;
      SkipSpace();
      if (Take("]")) return true;
      if (!Take(",")) return Fail("Expecting ',' delimiter", at_);
      SkipSpace();
    }
  }

  const std::string_view text_;
  size_t at_ = 0;
  JsonScan scan_;
};

bool IsJsonType(std::string_view content_type) {
  std::string type = http::AsciiLower(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type == "application/json" ||
         (type.starts_with("application/") && type.ends_with("+json"));
}

}  // namespace

JsonScan ScanJson(std::string_view text) { return Scanner(text).Run(); }

std::optional<Failure> ReadJsonBody(std::string_view body,
                                    std::optional<std::string_view> content_type, Json* value) {
  if (body.empty()) {
    ValidationErrors errors;
    errors.Add("missing", {"body"}, "Field required", nullptr);
    return errors.ToFailure();
  }
  if (!IsValidUtf8(body)) return DetailFailure(400, "There was an error parsing the body");
  if (content_type && !IsJsonType(*content_type)) {
    *value = std::string(body);
    return std::nullopt;
  }
  const JsonScan scan = ScanJson(body);
  if (scan.fault) {
    ValidationErrors errors;
    errors.Add("json_invalid", {"body", scan.fault->position}, "JSON decode error", Json::object(),
               {{"error", scan.fault->message}});
    return errors.ToFailure();
  }
  // Python reads NaN, and then fails to write it into its answer.
  if (scan.has_nan || scan.too_deep) return PlainFailure();
  *value = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (value->is_discarded()) return DetailFailure(400, "There was an error parsing the body");
  return std::nullopt;
}

}  // namespace bridge::local::api
