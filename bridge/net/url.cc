// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

namespace bridge {
namespace {

using CurlUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string Part(const CurlUrl& url, CURLUPart which) {
  char* text = nullptr;
  std::string result;
  if (curl_url_get(url.get(), which, &text, 0) == CURLUE_OK) result = text;
  curl_free(text);
  return result;
}

// curl knows the ports of the WebSocket schemes only where it speaks WebSocket itself.
std::string_view DefaultPort(std::string_view scheme) {
  if (scheme == "http" || scheme == "ws") return "80";
  if (scheme == "https" || scheme == "wss") return "443";
  return "";
}

}  // namespace

std::optional<UrlParts> ParseUrl(std::string_view text) {
  const CurlUrl url(curl_url(), &curl_url_cleanup);
  if (text.find('\0') != std::string_view::npos ||
      curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(), CURLU_NON_SUPPORT_SCHEME) !=
          CURLUE_OK) {
    return std::nullopt;
  }
  UrlParts parts{.scheme = Part(url, CURLUPART_SCHEME),
                 .host = Part(url, CURLUPART_HOST),
                 .port = Part(url, CURLUPART_PORT),
                 .target = Part(url, CURLUPART_PATH)};
  const std::string_view usual = DefaultPort(parts.scheme);
  if (parts.port.empty()) parts.port = usual;
  parts.default_port = parts.port == usual;
  const std::string query = Part(url, CURLUPART_QUERY);
  if (!query.empty()) parts.target += "?" + query;
  return parts;
}

std::string HostAndPort(std::string_view url) {
  const std::optional<UrlParts> parts = ParseUrl(url);
  return parts ? fmt::format("{}:{}", parts->host, parts->port) : std::string();
}

}  // namespace bridge
