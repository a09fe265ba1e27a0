// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/base_url.h"

#include <charconv>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "bridge/base/ascii.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"

namespace bridge {
namespace {

constexpr std::string_view kSchemeEnd = "://";
constexpr size_t kMaxUrlBytes = 2048;

struct Authority {
  std::string host;  // lower case; an IPv6 address in its brackets
  std::optional<int> port;
};

// "h", "h:1", "[::1]:8080". Nothing when it is malformed.
std::optional<Authority> ParseAuthority(std::string_view text) {
  size_t host_end = text.find(':');
  if (!text.empty() && text.front() == '[') {
    const size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    host_end = bracket + 1;
  }
  if (host_end == std::string_view::npos) host_end = text.size();
  Authority result{.host = AsciiLowered(text.substr(0, host_end)), .port = std::nullopt};
  if (result.host.empty() || result.host == "[]") return std::nullopt;
  for (const char c : result.host) {
    const auto u = static_cast<unsigned char>(c);
    if (!absl::ascii_isgraph(u) ||
        std::string_view("/\\?#@<>\"'`{}|^%").find(c) != std::string_view::npos) {
      return std::nullopt;
    }
  }
  std::string_view rest = text.substr(host_end);
  if (rest.empty()) return result;
  if (rest.front() != ':') return std::nullopt;
  rest.remove_prefix(1);
  int port = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (error != std::errc() || end != rest.data() + rest.size() || port < 1 || port > 65535) {
    return std::nullopt;
  }
  result.port = port;
  return result;
}

// "/gw//osb/v1/" → "/gw/osb"; nothing for dot segments and characters that no path has.
std::optional<std::string> CleanPrefix(std::string_view path) {
  std::vector<std::string> segments =
      absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty());
  if (!segments.empty() && AsciiLowered(segments.back()) == "v1") segments.pop_back();
  std::string result;
  for (const std::string& segment : segments) {
    if (segment == "." || segment == "..") return std::nullopt;
    for (const char c : segment) {
      if (!absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == '\\') return std::nullopt;
    }
    result += '/';
    result += segment;
  }
  return result;
}

}  // namespace

absl::StatusOr<BaseUrl> ParseBaseUrl(std::string_view text, std::string_view field) {
  if (text.empty()) return InvalidField(field, "must not be empty; write http://host:port");
  if (text.size() > kMaxUrlBytes) return InvalidField(field, "is longer than 2048 bytes");
  std::string scheme = "http";
  const size_t scheme_end = text.find(kSchemeEnd);
  if (scheme_end != std::string_view::npos) {
    scheme = AsciiLowered(text.substr(0, scheme_end));
    text.remove_prefix(scheme_end + kSchemeEnd.size());
    if (scheme != "http" && scheme != "https") {
      return InvalidField(field, "must be an http or https URL");
    }
  }
  if (text.find('?') != std::string_view::npos || text.find('#') != std::string_view::npos) {
    return InvalidField(field, "must not have a query or a fragment");
  }
  const size_t path_start = text.find('/');
  const std::string_view authority_text = text.substr(0, path_start);
  if (authority_text.find('@') != std::string_view::npos) {
    return InvalidField(field, "must not hold credentials; give the key in a file");
  }
  const std::optional<Authority> authority = ParseAuthority(authority_text);
  if (!authority) return InvalidField(field, "has no valid host and port");
  const std::optional<std::string> prefix =
      CleanPrefix(path_start == std::string_view::npos ? "" : text.substr(path_start));
  if (!prefix) return InvalidField(field, "has a path with dot segments or blanks");

  BaseUrl result;
  result.host =
      authority->port ? fmt::format("{}:{}", authority->host, *authority->port) : authority->host;
  result.root = scheme + std::string(kSchemeEnd) + result.host + *prefix;
  result.api = result.root + "/v1";
  return result;
}

std::string OriginOf(std::string_view url) {
  const size_t scheme_end = url.find(kSchemeEnd);
  if (scheme_end == std::string_view::npos) return "";
  std::string scheme = AsciiLowered(url.substr(0, scheme_end));
  if (scheme == "ws") scheme = "http";
  if (scheme == "wss") scheme = "https";
  if (scheme != "http" && scheme != "https") return "";
  url.remove_prefix(scheme_end + kSchemeEnd.size());
  const std::optional<Authority> authority =
      ParseAuthority(url.substr(0, url.find_first_of("/?#")));
  if (!authority) return "";
  const int default_port = scheme == "https" ? 443 : 80;
  return fmt::format("{}://{}:{}", scheme, authority->host, authority->port.value_or(default_port));
}

std::string EncodeSegment(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(u) || c == '-' || c == '_' || c == '~' || c == '.') {
      result += c;
    } else {
      result += fmt::format("%{:02X}", u);
    }
  }
  // A segment of dots alone would be taken for a step up the tree by whoever stands between.
  if (result == "." || result == "..") {
    return result == "." ? "%2E" : "%2E%2E";
  }
  return result;
}

}  // namespace bridge
