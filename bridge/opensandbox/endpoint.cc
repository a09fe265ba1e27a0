// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/endpoint.h"

#include "absl/strings/ascii.h"
#include "bridge/base/ascii.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/base_url.h"

namespace bridge {
namespace {

constexpr std::string_view kExecdProxy = "/proxy/44772";
constexpr size_t kMaxEndpointBytes = 4096;

absl::Status Malformed(std::string_view problem) {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the endpoint that the server names " + std::string(problem));
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text, HttpHeaders headers,
                                       std::string_view server_url, bool through_server) {
  if (text.empty()) return Malformed("is empty");
  if (text.size() > kMaxEndpointBytes) return Malformed("is longer than 4096 bytes");
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return Malformed("holds blanks or control characters");
    }
  }
  if (text.find('?') != std::string_view::npos || text.find('#') != std::string_view::npos) {
    return Malformed("has a query, to which no path can be appended");
  }
  std::string url;
  if (StartsWithIgnoreCase(text, "http://") || StartsWithIgnoreCase(text, "https://")) {
    const size_t colon = text.find(':');
    url = AsciiLowered(text.substr(0, colon));
    url += text.substr(colon);
  } else if (text.find("://") != std::string_view::npos) {
    return Malformed("is neither http nor https");
  } else {
    if (text.substr(0, 2) == "//") text.remove_prefix(2);
    url = StartsWithIgnoreCase(server_url, "https://") ? "https://" : "http://";
    url += text;
  }
  while (url.back() == '/') url.pop_back();
  const std::string origin = OriginOf(url);
  if (origin.empty()) return Malformed("has no valid host and port");
  Endpoint result;
  result.url = std::move(url);
  result.headers = std::move(headers);
  // The key may go to the server that was configured, and to nobody whom an answer names.
  result.through_server = through_server && origin == OriginOf(server_url);
  return result;
}

Endpoint WithoutExecdProxy(Endpoint endpoint) {
  if (endpoint.through_server || endpoint.url.size() <= kExecdProxy.size()) return endpoint;
  const size_t path = endpoint.url.find('/', endpoint.url.find("://") + 3);
  if (path == std::string::npos || std::string_view(endpoint.url).substr(path) != kExecdProxy) {
    return endpoint;
  }
  endpoint.url.resize(path);
  return endpoint;
}

std::string WebSocketUrl(std::string_view url) {
  if (StartsWithIgnoreCase(url, "https://")) return "wss" + std::string(url.substr(5));
  if (StartsWithIgnoreCase(url, "http://")) return "ws" + std::string(url.substr(4));
  return std::string(url);
}

}  // namespace bridge
