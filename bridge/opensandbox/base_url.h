// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/base_url.h — the address of an OpenSandbox server, however people spell it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bridge {

struct BaseUrl {
  // "http://h:8080/gw" — scheme, host, port as given, path prefix without "/v1"; no slash at the
  // end. /health and /version live here.
  std::string root = {};
  // root + "/v1": the API.
  std::string api = {};
  // "h:8080", for messages.
  std::string host = {};
};

// Takes "http://h:1", "h:1" (http), "HTTP://H:1/", ".../v1", ".../v1//", "http://h/gw/osb/v1/".
// Errors, each with its reason and without repeating what was given: INVALID_ARGUMENT for `field`
// (empty, another scheme, user-info, a query or fragment, no host, a bad port, dot segments).
absl::StatusOr<BaseUrl> ParseBaseUrl(std::string_view text, std::string_view field = "upstream");

// Scheme, lower-case host and port (the scheme's default where none is given) of an absolute URL:
// "http://h:80". Two URLs lead to the same server if these are equal. Empty if it is no such URL.
std::string OriginOf(std::string_view url);

// One segment of a path: everything but unreserved characters percent-encoded.
std::string EncodeSegment(std::string_view text);

}  // namespace bridge
