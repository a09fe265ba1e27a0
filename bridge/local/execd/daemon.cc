// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/daemon.h"

#include <signal.h>

#include <utility>

#include "bridge/local/execd/command_routes.h"
#include "bridge/local/execd/commands.h"
#include "bridge/local/execd/extra/extra_routes.h"
#include "bridge/local/execd/file_routes.h"
#include "bridge/local/execd/front.h"
#include "bridge/local/execd/metrics.h"
#include "bridge/local/execd/process.h"
#include "bridge/local/execd/proxy_route.h"
#include "bridge/local/execd/ptys.h"
#include "bridge/local/execd/reply.h"
#include "bridge/local/execd/session_routes.h"
#include "bridge/local/execd/sessions.h"
#include "bridge/local/execd/timer.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd {

class Daemon::Impl {
 public:
  explicit Impl(DaemonOptions options)
      : options_(std::move(options)),
        commands_(processes_, timer_, options_.habits),
        sessions_(processes_, timer_, commands_, options_.habits),
        ptys_(processes_, commands_, options_.habits),
        execs_(processes_, timer_) {
    router_.Add("GET", "/ping", [](http::Exchange& x) { ReplyEmpty(x); });
    AddCommandRoutes(router_, commands_, options_.habits,
                     [this](const std::string& id) { return sessions_.Close(id); });
    AddSessionRoutes(router_, sessions_);
    ptys_.AddRoutes(router_);
    AddFileRoutes(router_, options_.habits);
    AddMetricsRoutes(router_);
    if (options_.habits.extras) {
      extra::AddExtraRoutes(router_, execs_, std::string(options_.habits.name));
    }
    AddProxyRoute(router_, options_.known_port);
  }

  ~Impl() {
    // Handlers wait for the ends of commands, so these come first.
    processes_.KillAll(absl::Seconds(5));
    server_.reset();
  }

  absl::Status Listen() {
    const Front front{options_.access_token, options_.habits.open_ping};
    auto server = http::Server::Start(options_.server, [this, front](http::Exchange& exchange) {
      if (!front.Handle(exchange, router_)) router_.Handle(exchange);
    });
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }

  int port() const { return server_->port(); }

 private:
  const DaemonOptions options_;
  Processes processes_;
  Timer timer_;
  Commands commands_;
  Sessions sessions_;
  Ptys ptys_;
  extra::Execs execs_;
  http::Router router_;
  std::unique_ptr<http::Server> server_;
};

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(DaemonOptions options) {
  signal(SIGPIPE, SIG_IGN);  // input may be written to a process that has just ended
  auto impl = std::make_unique<Impl>(std::move(options));
  if (absl::Status status = impl->Listen(); !status.ok()) return status;
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;
int Daemon::port() const { return impl_->port(); }

}  // namespace bridge::local::execd
