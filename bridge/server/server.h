// SPDX-License-Identifier: Apache-2.0
//
// server/server.h — the bridge as a server: gRPC with TLS and identity, health, metrics, drain.
//
// Threads: the gRPC library's (2 and an executor), one a loop, the log's, and small ones for the
// idle tick, memory trimming, file watching and the admin server; their number does not depend on
// load. Any thread may call it, one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/server/admin.h"
#include "bridge/server/call_log.h"
#include "bridge/server/file_watch.h"
#include "bridge/server/health_listener.h"
#include "bridge/server/log.h"
#include "bridge/server/memory_trim.h"
#include "bridge/server/metrics.h"
#include "bridge/server/options.h"
#include "bridge/server/services.h"
#include "bridge/server/token_file.h"
#include "bridge/service/call_host.h"
#include "bridge/service/idle_tick.h"
#include "grpcpp/server.h"

namespace bridge {

class Server {
 public:
  // Binds, reads files, starts. `log` must outlive the server.
  // Errors: INVALID_ARGUMENT naming the flag that is wrong, in one line.
  static absl::StatusOr<std::unique_ptr<Server>> Create(ServerOptions options, Log& log);
  // Shutdown without any grace if nobody called it.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Where it listens, with the ports that were given out.
  const std::vector<ListenAddress>& addresses() const { return addresses_; }
  // 0: there is no admin server.
  int admin_port() const { return admin_ == nullptr ? 0 : admin_->port(); }
  // Null: health has no address of its own.
  const HealthListener* health() const { return health_.get(); }
  CallHost& host() { return host_; }
  Services& services() { return *services_; }

  // From now on health says NOT_SERVING and /readyz 503; calls are served as before.
  void MarkNotReady();
  // Refuses new calls (DRAINING), lets those that run end within `grace`, interrupts the rest, then
  // waits for their background tasks for as long again. Blocks. True: nothing was left over.
  bool Shutdown(absl::Duration grace);

  // Looks at tokens, keys and certificates now.
  void Reload() { files_.Poke(); }
  // Writes every running call to the log.
  void DumpCalls();

 private:
  // Metrics and log behind the one observer that a CallHost has.
  class Observers final : public CallObserver {
   public:
    Observers(Metrics& metrics, CallLog& log) : metrics_(metrics), log_(log) {}
    void OnStart(const Method& method) override { metrics_.OnStart(method); }
    void OnEnd(const CallRecord& record) override {
      metrics_.OnEnd(record);
      log_.OnEnd(record);
    }

   private:
    Metrics& metrics_;
    CallLog& log_;
  };

  Server(ServerOptions options, Log& log, std::unique_ptr<TlsStore> tls,
         std::unique_ptr<TokenAuthenticator> authenticator, std::string api_key);
  absl::Status Start();
  absl::Status StartGrpc();
  absl::Status StartHealth();
  absl::Status StartAdmin();
  void AddMetrics();
  void WatchFiles(std::string tokens, std::string key);
  AdminAnswer Liveness();
  AdminAnswer Readiness() const;

  const ServerOptions options_;
  Log& log_;
  Metrics metrics_;
  CallLog call_log_;
  Observers observers_;
  const std::unique_ptr<TlsStore> tls_;                      // null: plain text
  const std::unique_ptr<TokenAuthenticator> authenticator_;  // null: everyone may call
  CallHost host_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<ListenAddress> addresses_;
  std::atomic<bool> ready_{false};
  bool down_ = false;
  std::unique_ptr<IdleTick> tick_;
  std::unique_ptr<MemoryTrim> trim_;
  FileWatch files_;
  std::unique_ptr<HealthListener> health_;
  std::unique_ptr<AdminServer> admin_;  // last: its handlers look at the rest
};

}  // namespace bridge
