// SPDX-License-Identifier: Apache-2.0
//
// net/url.h — the parts of an absolute URL, by libcurl's own parser, so that what we say about a
// URL is what curl does with it. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bridge {

struct UrlParts {
  std::string scheme;  // lower case
  std::string host;    // IPv6 addresses in brackets; no user-info
  std::string port;    // always there for http(s) and ws(s)
  std::string target;  // path and query, as a request line wants it
  bool default_port = false;
};

std::optional<UrlParts> ParseUrl(std::string_view url);

// "host:port" without user-info; empty when the URL cannot be read.
std::string HostAndPort(std::string_view url);

}  // namespace bridge
