// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/service.h"

#include <algorithm>

#include "bridge/local/api/json_body.h"
#include "bridge/local/lifecycle/reply.h"

namespace bridge::local::lifecycle {
namespace {

using api::CodeFailure;
using api::DetailFailure;

constexpr char kProxyMethods[] = "PUT, POST, PATCH, GET, DELETE";

bool IsProxyMethod(std::string_view method) {
  return std::string_view(kProxyMethods).find(method) != std::string_view::npos;
}

bool IsPreflight(const http::Request& request) {
  return request.method == "OPTIONS" && request.headers.Has("origin") &&
         request.headers.Has("access-control-request-method");
}

// Takes as long for a secret that is wrong in its first letter as for one wrong in its last.
bool SameSecret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

bool ReadBody(http::Exchange& exchange, Json* body) {
  const absl::StatusOr<std::string> bytes = exchange.ReadAll();
  if (!bytes.ok()) {
    exchange.CloseAfter();
    return false;  // the client has gone
  }
  const auto failure =
      api::ReadJsonBody(*bytes, exchange.request().headers.Get("content-type"), body);
  if (failure) ReplyFailure(exchange, *failure);
  return !failure;
}

Service::Service(Sandboxes& sandboxes, ServiceOptions options)
    : sandboxes_(sandboxes), options_(std::move(options)), proxy_(sandboxes_, options_.proxy) {
  MountSandboxRoutes();
  MountProxyRoutes();
  MountOtherRoutes();
  router_.SetFallback([this](http::Exchange& exchange, const std::vector<std::string>& allowed) {
    Fallback(exchange, allowed);
  });
}

void Service::Mount(const char* method, const std::string& path, Method handler) {
  for (const char* mount : {"", "/v1"}) {
    router_.Add(method, mount + path,
                [this, handler](http::Exchange& exchange) { (this->*handler)(exchange); });
  }
}

void Service::MountSandboxRoutes() {
  Mount("POST", "/sandboxes", &Service::Create);
  Mount("GET", "/sandboxes", &Service::List);
  Mount("GET", "/sandboxes/{sandbox_id}", &Service::Get);
  Mount("DELETE", "/sandboxes/{sandbox_id}", &Service::Delete);
  Mount("PATCH", "/sandboxes/{sandbox_id}/metadata", &Service::PatchMetadata);
  Mount("POST", "/sandboxes/{sandbox_id}/pause", &Service::Pause);
  Mount("POST", "/sandboxes/{sandbox_id}/resume", &Service::Resume);
  Mount("POST", "/sandboxes/{sandbox_id}/renew-expiration", &Service::Renew);
  Mount("GET", "/sandboxes/{sandbox_id}/endpoints/{port}", &Service::Endpoint);
  Mount("GET", "/sandboxes/{sandbox_id}/diagnostics/logs", &Service::DiagnosticsLogs);
  Mount("GET", "/sandboxes/{sandbox_id}/diagnostics/events", &Service::DiagnosticsEvents);
  Mount("GET", "/sandboxes/{sandbox_id}/diagnostics/inspect", &Service::DiagnosticsInspect);
  Mount("GET", "/sandboxes/{sandbox_id}/diagnostics/summary", &Service::DiagnosticsSummary);
  for (const char* method : {"GET", "PUT", "PATCH", "DELETE"}) {
    Mount(method, "/sandboxes/{sandbox_id}/networkpolicy", &Service::NetworkPolicy);
  }
}

void Service::MountProxyRoutes() {
  for (const std::string mount : {"", "/v1"}) {
    for (const char* tail : {"", "/{full_path...}"}) {
      const std::string pattern = mount + "/sandboxes/{sandbox_id}/proxy/{port}" + tail;
      router_.Add("*", pattern, [this, mount](http::Exchange& exchange) {
        if (IsProxyMethod(exchange.request().method)) return proxy_.HandleHttp(exchange, mount);
        ReplyJson(exchange, 405, DetailFailure(405, "Method Not Allowed").body,
                  {{"allow", kProxyMethods}});
      });
      router_.AddWebSocket(pattern,
                           [this](http::Exchange& exchange) { proxy_.HandleWebSocket(exchange); });
    }
  }
}

void Service::MountOtherRoutes() {
  const auto bare = [this](const char* method, const char* path, Method handler) {
    router_.Add(method, path,
                [this, handler](http::Exchange& exchange) { (this->*handler)(exchange); });
  };
  bare("GET", "/health", &Service::Health);
  bare("GET", "/version", &Service::Version);
  bare("POST", "/v1/metrics/events", &Service::MetricsEvent);
  Mount("POST", "/sandboxes/{sandbox_id}/snapshots", &Service::CreateSnapshot);
  Mount("GET", "/snapshots", &Service::NoSnapshots);
  Mount("GET", "/snapshots/{snapshot_id}", &Service::NoSnapshots);
  Mount("DELETE", "/snapshots/{snapshot_id}", &Service::NoSnapshots);
  Mount("POST", "/pools", &Service::CreatePool);
  Mount("GET", "/pools", &Service::NoPools);
  Mount("GET", "/pools/{pool_name}", &Service::NoPools);
  Mount("PUT", "/pools/{pool_name}", &Service::UpdatePool);
  Mount("DELETE", "/pools/{pool_name}", &Service::NoPools);
  Mount("POST", "/templates", &Service::CreateTemplate);
  Mount("GET", "/templates", &Service::NoTemplates);
  Mount("GET", "/templates/{template_id}", &Service::NoTemplates);
  Mount("DELETE", "/templates/{template_id}", &Service::NoTemplates);
}

void Service::Handle(http::Exchange& exchange) {
  if (IsPreflight(exchange.request())) return ReplyPreflight(exchange);
  if (Authenticate(exchange)) router_.Handle(exchange);
}

bool Service::Authenticate(http::Exchange& exchange) const {
  if (options_.api_key.empty()) return true;
  const http::Request& request = exchange.request();
  for (const char* prefix : {"/health", "/version", "/docs", "/redoc", "/openapi.json"}) {
    if (request.path.starts_with(prefix)) return true;
  }
  if (IsOpenProxyPath(request.path)) return true;
  const auto key = request.headers.Get("open-sandbox-api-key");
  if (key && SameSecret(*key, options_.api_key)) return true;
  if (key && !key->empty()) {
    ReplyFailure(exchange,
                 CodeFailure(401, "INVALID_API_KEY",
                             "Authentication credentials are invalid. Check your API key and try "
                             "again."));
  } else {
    ReplyFailure(exchange,
                 CodeFailure(401, "MISSING_API_KEY",
                             "Authentication credentials are missing. Provide API key via "
                             "OPEN-SANDBOX-API-KEY header."));
  }
  return false;
}

void Service::Fallback(http::Exchange& exchange, const std::vector<std::string>& allowed) const {
  const http::Request& request = exchange.request();
  if (!allowed.empty()) {
    // The framework names the methods of the first route of that path only.
    return ReplyJson(exchange, 405, DetailFailure(405, "Method Not Allowed").body,
                     {{"allow", allowed.front()}});
  }
  // One slash more or less would have found something: go there.
  std::string other = request.path;
  if (other.ends_with('/')) {
    other.pop_back();
  } else {
    other += '/';
  }
  if (other.size() > 1 &&
      router_.Find(request.method, other).result != http::Router::Match::Result::kNotFound) {
    std::string location = "http://" + std::string(request.headers.Get("host").value_or("")) +
                           http::PercentEncode(other, "/:@!$&'()*+,;=");
    if (!request.raw_query.empty()) location += "?" + request.raw_query;
    return ReplyRedirect(exchange, location);
  }
  ReplyFailure(exchange, DetailFailure(404, "Not Found"));
}

}  // namespace bridge::local::lifecycle
