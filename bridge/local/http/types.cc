// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/types.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <ctime>

namespace bridge::local::http {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  return lower;
}

std::optional<std::string_view> Headers::Get(std::string_view name) const {
  for (const Item& item : items_) {
    if (EqualsIgnoreCase(item.first, name)) return item.second;
  }
  return std::nullopt;
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const Item& item : items_) {
    if (!EqualsIgnoreCase(item.first, name)) continue;
    std::string_view rest = item.second;
    while (true) {
      const size_t comma = rest.find(',');
      if (EqualsIgnoreCase(Trim(rest.substr(0, comma)), token)) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return false;
}

void Headers::Add(std::string_view name, std::string_view value) {
  items_.emplace_back(std::string(name), std::string(value));
}

void Headers::Set(std::string_view name, std::string_view value) {
  const auto same = [name](const Item& item) { return EqualsIgnoreCase(item.first, name); };
  const auto first = std::find_if(items_.begin(), items_.end(), same);
  if (first == items_.end()) return Add(name, value);
  first->second = std::string(value);
  items_.erase(std::remove_if(first + 1, items_.end(), same), items_.end());
}

void Headers::Remove(std::string_view name) {
  items_.erase(
      std::remove_if(items_.begin(), items_.end(),
                     [name](const Item& item) { return EqualsIgnoreCase(item.first, name); }),
      items_.end());
}

void Request::SplitTarget() {
  std::string_view rest = target;
  // The absolute form, "http://host/path", is for proxies; its path is all that matters here.
  if (!rest.empty() && rest.front() != '/') {
    const size_t scheme = rest.find("://");
    if (scheme != std::string_view::npos) {
      const size_t slash = rest.find('/', scheme + 3);
      rest = slash == std::string_view::npos ? std::string_view("/") : rest.substr(slash);
    }
  }
  const size_t mark = rest.find('?');
  raw_path = std::string(rest.substr(0, mark));
  raw_query = mark == std::string_view::npos ? "" : std::string(rest.substr(mark + 1));
  bad_path_escape = false;
  path = PercentDecode(raw_path, false, &bad_path_escape);
  query = ParseQuery(raw_query);
}

std::optional<std::string> Request::QueryFirst(std::string_view name) const {
  for (const QueryParam& p : query) {
    if (p.name == name) return p.value;
  }
  return std::nullopt;
}

std::optional<std::string> Request::QueryLast(std::string_view name) const {
  for (auto p = query.rbegin(); p != query.rend(); ++p) {
    if (p->name == name) return p->value;
  }
  return std::nullopt;
}

std::vector<std::string> Request::QueryAll(std::string_view name) const {
  std::vector<std::string> values;
  for (const QueryParam& p : query) {
    if (p.name == name) values.push_back(p.value);
  }
  return values;
}

const std::string& Request::param(const std::string& name) const {
  static const std::string* const empty = new std::string;
  const auto it = params.find(name);
  return it == params.end() ? *empty : it->second;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Request Entity Too Large";
    case 416:
      return "Requested Range Not Satisfiable";
    case 418:
      return "I'm a teapot";
    case 422:
      return "Unprocessable Entity";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

std::string PercentDecode(std::string_view text, bool plus, bool* bad) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high >= 0 && low >= 0) {
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
        continue;
      }
      if (bad != nullptr) *bad = true;
    }
    out.push_back(plus && c == '+' ? ' ' : c);
  }
  return out;
}

std::string PercentEncode(std::string_view text, std::string_view keep) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool unreserved = (c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z') ||
                            c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved || keep.find(c) != std::string_view::npos) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

std::vector<QueryParam> ParseQuery(std::string_view raw) {
  std::vector<QueryParam> params;
  while (!raw.empty()) {
    const size_t end = raw.find('&');
    const std::string_view pair = raw.substr(0, end);
    raw.remove_prefix(end == std::string_view::npos ? raw.size() : end + 1);
    if (pair.empty()) continue;
    QueryParam param;
    const size_t equals = pair.find('=');
    param.name = PercentDecode(pair.substr(0, equals), true, &param.bad_escape);
    if (equals != std::string_view::npos) {
      param.value = PercentDecode(pair.substr(equals + 1), true, &param.bad_escape);
    }
    params.push_back(std::move(param));
  }
  return params;
}

std::string HttpDate(long long unix_seconds) {
  // Not strftime: its names follow the locale.
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t seconds = static_cast<time_t>(unix_seconds);
  tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 64> text{};
  snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[utc.tm_wday],
           utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
           utc.tm_sec);
  return text.data();
}

}  // namespace bridge::local::http
