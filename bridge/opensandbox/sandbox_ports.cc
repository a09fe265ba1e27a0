// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_ports.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/sandbox_reader.h"
#include "fmt/format.h"

namespace bridge {
namespace {

constexpr char kDescriptorNote[] =
    "each request costs the sandbox's daemon a file descriptor for ten minutes; port 8080, or the "
    "server's proxy, does not";
constexpr char kProxyNote[] =
    "the OpenSandbox server's proxy drops Authorization and Cookie headers, may share cookies that "
    "applications set among callers, and may want an OpenSandbox key";

PortUrl ToPortUrl(Endpoint endpoint, bool through_server) {
  PortUrl result;
  result.websocket_url = WebSocketUrl(endpoint.url);
  result.url = std::move(endpoint.url);
  result.headers = std::move(endpoint.headers);
  result.through_server = through_server;
  return result;
}

// "http://h:1/proxy/8000": through execd's own reverse proxy.
bool IsExecdProxy(std::string_view url) {
  const size_t path = url.find('/', url.find("://") + 3);
  return path != std::string_view::npos && url.substr(path, 7) == "/proxy/";
}

std::string Base36(int64_t value) {
  std::string text;
  do {
    text += "0123456789abcdefghijklmnopqrstuvwxyz"[value % 36];
    value /= 36;
  } while (value > 0);
  std::reverse(text.begin(), text.end());
  return text;
}

// A signed route carries "...-{port}-{expires in base 36}-{signature}", in the URL or in a header.
// A server that does not know the parameter ignores it and answers the ordinary, unsigned one.
bool IsSigned(const Endpoint& endpoint, int port, int64_t expires) {
  const std::string token = fmt::format("-{}-{}-", port, Base36(expires));
  if (endpoint.url.find(token) != std::string::npos) return true;
  return std::any_of(endpoint.headers.begin(), endpoint.headers.end(), [&token](const auto& field) {
    return field.value.find(token) != std::string::npos;
  });
}

}  // namespace

Task<absl::StatusOr<PortUrl>> GetPortUrl(LifecycleClient& client, CallContext context,
                                         std::string sandbox_id, std::string incarnation, int port,
                                         bool through_server) {
  CO_RETURN_IF_ERROR(co_await CheckSandbox(client, context, sandbox_id, incarnation));
  CO_ASSIGN_OR_RETURN(Endpoint endpoint,
                      co_await client.GetEndpoint(context, sandbox_id, port, through_server));
  if (port == kExecdPort && !through_server) endpoint = WithoutExecdProxy(std::move(endpoint));
  const bool costs = !through_server && IsExecdProxy(endpoint.url);
  PortUrl result = ToPortUrl(std::move(endpoint), through_server);
  if (costs) result.notes.emplace_back(kDescriptorNote);
  if (through_server) result.notes.emplace_back(kProxyNote);
  co_return result;
}

Task<absl::StatusOr<PortUrl>> SignPortUrl(LifecycleClient& client, CallContext context,
                                          std::string sandbox_id, std::string incarnation, int port,
                                          absl::Time expires_at) {
  const int64_t expires = absl::ToUnixSeconds(
      absl::FromUnixSeconds(0) + absl::Floor(expires_at - absl::UnixEpoch(), absl::Seconds(1)));
  if (expires <= absl::ToUnixSeconds(client.loop().clock().Now())) {
    co_return InvalidField("expires_at", "must lie in the future");
  }
  CO_RETURN_IF_ERROR(co_await CheckSandbox(client, context, sandbox_id, incarnation));
  CO_ASSIGN_OR_RETURN(Endpoint endpoint,
                      co_await client.SignEndpoint(context, sandbox_id, port, expires));
  if (!IsSigned(endpoint, port, expires)) {
    co_return MakeError(ErrorReason::ERROR_REASON_SIGNED_ENDPOINT_UNSUPPORTED,
                        "the server answered an endpoint that is not signed",
                        {.metadata = {{"sandbox_id", sandbox_id}}});
  }
  PortUrl result = ToPortUrl(std::move(endpoint), false);
  result.expires_at = absl::FromUnixSeconds(expires);
  co_return result;
}

}  // namespace bridge
