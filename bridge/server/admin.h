// SPDX-License-Identifier: Apache-2.0
//
// server/admin.h — a small HTTP server for those who run the bridge: metrics and probes. GET only,
// plain text, no ids, no keys. By civetweb, in two threads of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bridge/server/listen_address.h"

struct mg_context;
struct mg_connection;

namespace bridge {

struct AdminAnswer {
  int status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
};

class AdminServer {
 public:
  // By path ("/healthz"). Called on one of its threads; may take a second, not more.
  using Handlers = std::map<std::string, std::function<AdminAnswer()>>;

  // Errors: INVALID_ARGUMENT for admin_listen when the address cannot be used.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const ListenAddress& address,
                                                            Handlers handlers);
  ~AdminServer();  // waits for running handlers
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  int port() const { return address_.port; }

 private:
  explicit AdminServer(Handlers handlers) : handlers_(std::move(handlers)) {}
  static int Serve(mg_connection* connection, void* self);
  AdminAnswer Answer(const std::string& method, const std::string& path) const;

  const Handlers handlers_;
  mg_context* context_ = nullptr;
  ListenAddress address_;
};

}  // namespace bridge
