// SPDX-License-Identifier: Apache-2.0
//
// local/http/types.h — values of HTTP/1.1: ordered headers, a request's head, a whole response.
//
// Header names keep the case in which they were received or set, and their order: both are part of
// what a recorded server looks like. Lookups ignore case. Pure values: any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bridge::local::http {

class Headers {
 public:
  using Item = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Item> items) : items_(items) {}

  // The first value of a name.
  std::optional<std::string_view> Get(std::string_view name) const;
  bool Has(std::string_view name) const { return Get(name).has_value(); }
  // Is `token` one of the comma-separated elements of any header of that name? Ignores case.
  bool HasToken(std::string_view name, std::string_view token) const;
  void Add(std::string_view name, std::string_view value);
  // Replaces the first of that name in place and drops the others; adds when there is none.
  void Set(std::string_view name, std::string_view value);
  void Remove(std::string_view name);

  const std::vector<Item>& items() const { return items_; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<Item> items_;
};

// One "name=value" of a query, decoded ('+' is a space).
struct QueryParam {
  std::string name;
  std::string value;
  bool bad_escape = false;  // held a '%' without two hex digits, which was left as it stood
};

struct Request {
  std::string method;
  std::string target;  // as received: "/a%20b?c=d"
  int minor_version = 1;
  Headers headers;
  std::string peer;       // "127.0.0.1:40404"
  std::string peer_host;  // "127.0.0.1"

  // Derived from `target` by SplitTarget().
  std::string raw_path;           // "/a%20b"
  std::string raw_query;          // "c=d"; empty also when there is only a '?'
  std::string path;               // decoded: "/a b"
  bool bad_path_escape = false;   // as QueryParam::bad_escape
  std::vector<QueryParam> query;  // in order

  // Filled by the Router.
  std::map<std::string, std::string> params;

  void SplitTarget();
  // The first, or the last, value of a query parameter.
  std::optional<std::string> QueryFirst(std::string_view name) const;
  std::optional<std::string> QueryLast(std::string_view name) const;
  std::vector<std::string> QueryAll(std::string_view name) const;
  // A path parameter; empty when the route has none of that name.
  const std::string& param(const std::string& name) const;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  std::string reason = {};  // empty = the usual phrase
};

std::string_view ReasonPhrase(int status);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string AsciiLower(std::string_view text);

// Decodes %XX; a '%' that is no escape stays and sets *bad. '+' becomes a space if `plus`.
std::string PercentDecode(std::string_view text, bool plus = false, bool* bad = nullptr);
// Escapes everything but unreserved characters and those of `keep`.
std::string PercentEncode(std::string_view text, std::string_view keep = "");
std::vector<QueryParam> ParseQuery(std::string_view raw);

// "Sun, 29 Nov 2026 16:46:36 GMT"
std::string HttpDate(long long unix_seconds);

}  // namespace bridge::local::http
