// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/endpoint.h — where a port of a sandbox is reached: the rules for what the server's
// `endpoints/{port}` answers. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/net/http_headers.h"

namespace bridge {

inline constexpr int kExecdPort = 44772;

struct Endpoint {
  // Absolute, http or https, without a trailing slash: "http://10.0.0.7:44772".
  std::string url = {};
  // Needed on every request there, WebSocket handshakes included. May hold credentials.
  HttpHeaders headers = {};
  // The URL leads through the lifecycle server, which wants its key.
  bool through_server = false;
};

// "host:port/path" as the server writes it (mostly without a scheme) → an Endpoint. The scheme is
// that of `server_url` unless the text has its own. Errors: UPSTREAM_PROTOCOL (empty, malformed).
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text, HttpHeaders headers,
                                       std::string_view server_url, bool through_server);

// The same endpoint without the detour through execd's own proxy, if it has the form that Docker
// upstreams hand out ("host:port/proxy/44772"): that proxy costs execd two descriptors a request
// until it has none left. Unchanged for every other form, and for the server's proxy.
Endpoint WithoutExecdProxy(Endpoint endpoint);

// ws:// or wss:// for http:// or https://.
std::string WebSocketUrl(std::string_view url);

}  // namespace bridge
