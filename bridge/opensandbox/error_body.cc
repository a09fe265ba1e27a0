// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/error_body.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "bridge/base/ascii.h"
#include "bridge/base/utf8.h"

namespace bridge {
namespace {

using nlohmann::json;

// Bodies beyond this are not parsed; a real one has a few hundred bytes, a 422 repeats the request.
constexpr size_t kMaxParsedBytes = 4 << 20;
constexpr int kMaxProblems = 5;
constexpr int kMaxDepth = 4;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

std::string TextOf(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return "";
  return it->get<std::string>();
}

// ["body", "env", "A"] → "body.env.A". Keys of maps are the caller's own words; they name the
// place.
std::string Place(const json& loc) {
  std::string result;
  if (!loc.is_array()) return result;
  for (const json& step : loc) {
    if (!result.empty()) result += '.';
    if (step.is_string()) {
      result += step.get<std::string>();
    } else if (step.is_number_integer()) {
      result += std::to_string(step.get<int64_t>());
    }
  }
  return result;
}

// FastAPI's list of problems. `input` and `ctx` repeat the request and stay behind.
std::string Problems(const json& list) {
  std::string result;
  int shown = 0;
  for (const json& item : list) {
    if (shown == kMaxProblems) break;
    std::string text;
    if (item.is_string()) {
      text = item.get<std::string>();
    } else if (item.is_object()) {
      const std::string place = item.contains("loc") ? Place(item["loc"]) : "";
      text = TextOf(item, "msg");
      if (text.empty()) text = TextOf(item, "message");
      if (!place.empty()) text = text.empty() ? place : place + ": " + text;
    }
    if (text.empty()) continue;
    if (!result.empty()) result += "; ";
    result += text;
    ++shown;
  }
  return result;
}

// The words of a JSON body into `out`; false when it says nothing.
bool ReadJson(const json& value, int depth, ErrorBody* out) {
  if (depth == kMaxDepth) return false;
  if (value.is_string()) {
    out->words = value.get<std::string>();
    return !out->words.empty();
  }
  if (value.is_array()) {
    out->words = Problems(value);
    return !out->words.empty();
  }
  if (!value.is_object()) return false;
  out->code = TextOf(value, "code");
  for (const char* key : {"message", "msg", "error_description"}) {
    out->words = TextOf(value, key);
    if (!out->words.empty()) return true;
  }
  for (const char* key : {"detail", "error", "errors"}) {
    const auto it = value.find(key);
    if (it == value.end()) continue;
    std::string code = std::move(out->code);
    const bool found = ReadJson(*it, depth + 1, out);
    if (out->code.empty()) out->code = std::move(code);
    if (found) return true;
  }
  return !out->code.empty();
}

bool LooksLikeHtml(std::string_view content_type, std::string_view body) {
  if (ContainsIgnoreCase(content_type, "text/html")) return true;
  const size_t start = body.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  body.remove_prefix(start);
  return StartsWithIgnoreCase(body, "<!doctype") || StartsWithIgnoreCase(body, "<html");
}

std::string Title(std::string_view body) {
  const std::string lower = absl::AsciiStrToLower(View(body.substr(0, 64 << 10)));
  const size_t open = lower.find("<title");
  const size_t start = open == std::string::npos ? open : lower.find('>', open);
  if (start == std::string::npos) return "";
  const size_t end = lower.find("</title", start);
  if (end == std::string::npos) return "";
  return std::string(body.substr(start + 1, end - start - 1));
}

bool AsksToSignIn(std::string_view body) {
  body = body.substr(0, 64 << 10);
  if (ContainsIgnoreCase(body, "type=\"password\"") || ContainsIgnoreCase(body, "type='password'"))
    return true;
  for (const char* word : {"log in", "login", "sign in", "signin", "single sign-on"}) {
    if (ContainsIgnoreCase(body, word)) return true;
  }
  return false;
}

// What FastAPI's and other routers answer when there is no such route.
bool IsRoutersWord(const ErrorBody& body) {
  return body.code.empty() && (EqualsIgnoreCase(body.words, "Not Found") ||
                               EqualsIgnoreCase(body.words, "Method Not Allowed"));
}

}  // namespace

std::string OneLine(std::string_view text, size_t max_bytes) {
  // Cut early: a page may be large. Four bytes for one is the worst that repairing does.
  std::string line = ToValidUtf8(text.substr(0, 4 * max_bytes + 4));
  std::string result;
  bool blank = false;
  for (const char c : line) {
    const auto u = static_cast<unsigned char>(c);
    if (u <= 0x20 || u == 0x7f) {
      blank = !result.empty();
      continue;
    }
    if (blank) result += ' ';
    blank = false;
    result += c;
  }
  if (result.size() <= max_bytes) return result;
  constexpr std::string_view kCut = "...";
  return std::string(Utf8Prefix(result, max_bytes - std::min(max_bytes, kCut.size()))) +
         std::string(kCut);
}

ErrorBody ParseErrorBody(std::string_view content_type, std::string_view body) {
  ErrorBody result;
  if (LooksLikeHtml(content_type, body)) {
    result.html = true;
    result.login_page = AsksToSignIn(body);
    result.words = OneLine(Title(body), kMaxUpstreamWords);
    return result;
  }
  const json value = body.size() <= kMaxParsedBytes ? json::parse(body, nullptr, false) : json();
  if (value.is_discarded()) {
    result.words = OneLine(body, kMaxUpstreamWords);
    return result;
  }
  const bool spoke = ReadJson(value, 0, &result);
  result.code = OneLine(result.code, 100);
  result.words = OneLine(result.words, kMaxUpstreamWords);
  result.from_application = spoke && !IsRoutersWord(result) && !value.is_string();
  return result;
}

}  // namespace bridge
