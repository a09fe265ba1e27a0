// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/service.h — the HTTP surface of the lifecycle server 1.1.1: authentication, every
// route, the framework's own answers. Handle() runs in the connections' threads.
#pragma once

#include <functional>
#include <string>

#include "bridge/local/http/router.h"
#include "bridge/local/lifecycle/notes.h"
#include "bridge/local/lifecycle/sandboxes.h"
#include "bridge/local/lifecycle/server_proxy.h"

namespace bridge::local::lifecycle {

struct ServiceOptions {
  std::string api_key;  // empty: everything is open
  // Of direct endpoints; empty: the host that the request was sent to.
  std::string public_host;
  ServerProxyOptions proxy;
  std::function<void(const std::string& id)> on_deleted = [](const std::string&) {};
};

class Service {
 public:
  Service(Sandboxes& sandboxes, ServiceOptions options);

  void Handle(http::Exchange& exchange);

 private:
  using Method = void (Service::*)(http::Exchange&);
  // Mounts a route under /v1 and bare.
  void Mount(const char* method, const std::string& path, Method handler);
  void MountSandboxRoutes();
  void MountProxyRoutes();
  void MountOtherRoutes();
  bool Authenticate(http::Exchange& exchange) const;
  void Fallback(http::Exchange& exchange, const std::vector<std::string>& allowed) const;

  // sandbox_routes.cc
  void Create(http::Exchange& exchange);
  void List(http::Exchange& exchange);
  void Get(http::Exchange& exchange);
  void Delete(http::Exchange& exchange);
  void PatchMetadata(http::Exchange& exchange);
  void Pause(http::Exchange& exchange);
  void Resume(http::Exchange& exchange);
  void Renew(http::Exchange& exchange);
  void Endpoint(http::Exchange& exchange);
  Json View(http::Exchange& exchange, const SandboxRecord& record) const;
  std::string PublicHost(const http::Request& request) const;

  // diagnostics_routes.cc
  void DiagnosticsLogs(http::Exchange& exchange);
  void DiagnosticsEvents(http::Exchange& exchange);
  void DiagnosticsInspect(http::Exchange& exchange);
  void DiagnosticsSummary(http::Exchange& exchange);

  // other_routes.cc
  void Health(http::Exchange& exchange);
  void Version(http::Exchange& exchange);
  void MetricsEvent(http::Exchange& exchange);
  void NetworkPolicy(http::Exchange& exchange);
  void CreateSnapshot(http::Exchange& exchange);
  void NoSnapshots(http::Exchange& exchange);
  void CreatePool(http::Exchange& exchange);
  void UpdatePool(http::Exchange& exchange);
  void NoPools(http::Exchange& exchange);
  void CreateTemplate(http::Exchange& exchange);
  void NoTemplates(http::Exchange& exchange);

  Sandboxes& sandboxes_;
  const ServiceOptions options_;
  ServerProxy proxy_;
  http::Router router_;
};

// Reads the body as JSON; answers and returns false if it cannot be read.
bool ReadBody(http::Exchange& exchange, Json* body);

}  // namespace bridge::local::lifecycle
