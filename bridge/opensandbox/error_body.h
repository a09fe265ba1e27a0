// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/error_body.h — what an error answer of the lifecycle server, of execd or of something
// between says, whatever its shape. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bridge {

inline constexpr size_t kMaxUpstreamWords = 300;

struct ErrorBody {
  // "DOCKER::SANDBOX_NOT_FOUND"; empty when the body has none.
  std::string code = {};
  // For people, at most kMaxUpstreamWords bytes of valid UTF-8 on one line; may be empty. Of a
  // refused request body only places and rules ("body.timeout: Input should be ..."), never its
  // values: OpenSandbox repeats the whole request there, passwords included.
  std::string words = {};
  // A web page: it comes from a proxy or a login gate, not from OpenSandbox. Then `words` is its
  // title.
  bool html = false;
  bool login_page = false;  // and it asks people to sign in
  // JSON with words of OpenSandbox' own: not a page, not bare text, not the router's "Not Found".
  bool from_application = false;
};

ErrorBody ParseErrorBody(std::string_view content_type, std::string_view body);

// `text` on one line without control characters, valid UTF-8, cut at `max_bytes` with "...".
std::string OneLine(std::string_view text, size_t max_bytes);

}  // namespace bridge
