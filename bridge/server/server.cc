// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/server.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/version.h"
#include "bridge/server/grpc_setup.h"
#include "bridge/server/grpc_shutdown.h"
#include "grpcpp/health_check_service_interface.h"

namespace bridge {
namespace {

// A loop that does not answer for so long is stuck.
constexpr std::chrono::seconds kLoopAnswers{1};

// The key without the line's end that editors and `echo` add.
std::string KeyIn(std::string content) {
  while (!content.empty() && (content.back() == '\n' || content.back() == '\r')) content.pop_back();
  return content;
}

absl::StatusOr<std::string> CheckedKey(std::string content) {
  std::string key = KeyIn(std::move(content));
  const bool clean =
      std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (key.empty() || !clean) return InvalidField("api_key_file", "holds no key in its one line");
  return key;
}

// Who may listen where without what.
absl::Status CheckExposure(const ServerOptions& options) {
  if (options.insecure_public) return absl::OkStatus();
  const bool identity = !options.auth_tokens_file.empty() || !options.tls.client_ca_file.empty();
  for (const ListenAddress& address : options.listen) {
    if (address.local()) continue;
    const std::string missing = !identity                ? "--auth_tokens_file or --client_ca_file"
                                : !options.tls.enabled() ? "--tls_cert_file and --tls_key_file"
                                                         : "";
    if (missing.empty()) continue;
    return InvalidField("listen", address.ToString() + " is reached by other machines: set " +
                                      missing +
                                      ", or --insecure_public if the network protects it");
  }
  if (options.channelz) {
    std::vector<ListenAddress> addresses = options.listen;
    // The library adds channelz to every server of the process.
    if (!options.health_listen.empty()) {
      ASSIGN_OR_RETURN(addresses.emplace_back(),
                       ParseListenAddress(options.health_listen, "health_listen"));
    }
    for (const ListenAddress& address : addresses) {
      if (!address.local()) {
        return InvalidField("channelz", "asks nobody for a token, so it needs local addresses");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Create(ServerOptions options, Log& log) {
  RETURN_IF_ERROR(CheckExposure(options));
  std::unique_ptr<TokenAuthenticator> authenticator;
  std::string tokens, key_content, key = options.api_key;
  if (!options.auth_tokens_file.empty()) {
    ASSIGN_OR_RETURN(tokens, ReadSecretFile(options.auth_tokens_file, "auth_tokens_file"));
    ASSIGN_OR_RETURN(std::vector<TokenEntry> entries, ParseTokenFile(tokens));
    authenticator = std::make_unique<TokenAuthenticator>(std::move(entries));
  }
  if (!options.api_key_file.empty()) {
    ASSIGN_OR_RETURN(key_content, ReadSecretFile(options.api_key_file, "api_key_file"));
    ASSIGN_OR_RETURN(key, CheckedKey(key_content));
  }
  std::unique_ptr<TlsStore> tls;
  if (options.tls.enabled()) {
    ASSIGN_OR_RETURN(tls, TlsStore::Load(options.tls));
  }
  std::unique_ptr<Server> server(new Server(std::move(options), log, std::move(tls),
                                            std::move(authenticator), std::move(key)));
  ASSIGN_OR_RETURN(server->services_, Services::Create(server->options_.services, server->host_));
  RETURN_IF_ERROR(server->Start());
  server->WatchFiles(std::move(tokens), std::move(key_content));
  return server;
}

Server::Server(ServerOptions options, Log& log, std::unique_ptr<TlsStore> tls,
               std::unique_ptr<TokenAuthenticator> authenticator, std::string api_key)
    : options_(std::move(options)),
      log_(log),
      call_log_(log, options_.log_calls),
      observers_(metrics_, call_log_),
      tls_(std::move(tls)),
      authenticator_(std::move(authenticator)),
      host_({.limits = options_.limits,
             .api_key = std::move(api_key),
             .forward_api_keys = options_.forward_api_keys,
             .authenticator = authenticator_.get(),
             .observer = &observers_,
             .clock = options_.services.clock}),
      files_(options_.reload_interval, [&log](std::string_view flag, const absl::Status& status) {
        if (status.ok()) {
          log.Write(LogLevel::kInfo, "file read again", {{"flag", std::string(flag)}});
        } else {
          log.Write(LogLevel::kError, "file not read again, what was in force stays so",
                    {{"flag", std::string(flag)}, {"error", std::string(status.message())}});
        }
      }) {}

Server::~Server() {
  if (!down_ && services_ != nullptr) Shutdown(absl::ZeroDuration());
  StopGrpcLog(log_);
}

absl::Status Server::Start() {
  AddMetrics();
  RETURN_IF_ERROR(StartGrpc());
  RETURN_IF_ERROR(StartHealth());
  RETURN_IF_ERROR(StartAdmin());
  for (const ListenAddress& address : addresses_) {
    log_.Write(LogLevel::kInfo, "listening on " + address.ToString(),
               {{"tls", options_.tls.enabled() ? "yes" : "no"},
                {"tokens", authenticator_ != nullptr ? "yes" : "no"}});
  }
  const bool all_local = std::all_of(addresses_.begin(), addresses_.end(),
                                     [](const ListenAddress& a) { return a.local(); });
  if (!all_local && options_.insecure_public &&
      (authenticator_ == nullptr || !options_.tls.enabled())) {
    log_.Write(LogLevel::kWarning,
               "--insecure_public: whoever reaches this address can use every sandbox");
  }
  ready_ = true;
  return absl::OkStatus();
}

absl::Status Server::StartGrpc() {
  const auto credentials =
      tls_ != nullptr ? tls_->Credentials() : grpc::InsecureServerCredentials();
  SilenceGrpcLog();
  EnableExtraServices(options_.reflection, options_.channelz);
  grpc::ServerBuilder builder;
  ApplyTransportSettings(options_, builder);
  std::vector<int> ports(options_.listen.size(), -1);
  for (size_t i = 0; i < ports.size(); ++i) {
    const ListenAddress& address = options_.listen[i];
    builder.AddListeningPort(address.ToString(), credentials, &ports[i]);
  }
  services_->Register(builder);
  server_ = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    ListenAddress address = options_.listen[i];
    if (server_ == nullptr || ports[i] <= 0) {
      const std::string why = WhyNotBound(address);
      if (server_ == nullptr && why.empty() && i + 1 < ports.size())
        continue;  // it was another one
      return InvalidField(
          "listen", "cannot listen on " + address.ToString() + (why.empty() ? "" : ": " + why));
    }
    if (!address.unix_socket) address.port = ports[i];
    addresses_.push_back(std::move(address));
  }
  RouteGrpcLog(log_);
  if (auto* health = server_->GetHealthCheckService(); health != nullptr) {
    for (const std::string& name : services_->Names()) health->SetServingStatus(name, true);
  }
  tick_ = std::make_unique<IdleTick>();
  trim_ = std::make_unique<MemoryTrim>();
  return absl::OkStatus();
}

absl::Status Server::StartHealth() {
  if (options_.health_listen.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(ListenAddress address,
                   ParseListenAddress(options_.health_listen, "health_listen"));
  ASSIGN_OR_RETURN(health_, HealthListener::Start(std::move(address), services_->Names()));
  log_.Write(LogLevel::kInfo, "health on " + health_->address().ToString());
  return absl::OkStatus();
}

absl::Status Server::StartAdmin() {
  if (options_.admin_listen.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(ListenAddress address,
                   ParseListenAddress(options_.admin_listen, "admin_listen"));
  AdminServer::Handlers handlers;
  handlers["/metrics"] = [this] {
    return AdminAnswer{.body = metrics_.Serialize(),
                       .content_type = "text/plain; version=0.0.4; charset=utf-8"};
  };
  handlers["/healthz"] = [this] { return Liveness(); };
  handlers["/readyz"] = [this] { return Readiness(); };
  ASSIGN_OR_RETURN(admin_, AdminServer::Start(address, std::move(handlers)));
  address.port = admin_->port();
  log_.Write(LogLevel::kInfo, "admin server on " + address.ToString());
  return absl::OkStatus();
}

void Server::AddMetrics() {
  metrics_.AddGauge("sandbox_bridge_live_calls", "Call objects in memory.",
                    [this] { return static_cast<double>(host_.live()); });
  metrics_.AddGauge("sandbox_bridge_ready", "1 while /readyz says so.",
                    [this] { return ready_ ? 1.0 : 0.0; });
  metrics_.AddGauge("sandbox_bridge_background_tasks", "Clean-ups that outlive their calls.",
                    [this] { return static_cast<double>(services_->BackgroundTasks()); });
  const Reclaimer& reclaimer = services_->lanes().control.clients.sandboxes.reclaimer;
  metrics_.AddCounter("sandbox_bridge_sandboxes_reclaimed_total",
                      "Sandboxes of failed or cut creations that are proven gone.",
                      [&reclaimer] { return static_cast<double>(reclaimer.reclaimed()); });
  metrics_.AddCounter("sandbox_bridge_sandboxes_leaked_total",
                      "Sandboxes of failed or cut creations that may still be there: look.",
                      [&reclaimer] { return static_cast<double>(reclaimer.leaked()); });
  metrics_.AddCounter("sandbox_bridge_log_lines_dropped_total",
                      "Lines of the log that nobody took in time.",
                      [this] { return static_cast<double>(log_.dropped()); });
}

void Server::WatchFiles(std::string tokens, std::string key) {
  if (authenticator_ != nullptr) {
    files_.Add("auth_tokens_file", options_.auth_tokens_file, std::move(tokens),
               [this](const std::string& content) -> absl::Status {
                 ASSIGN_OR_RETURN(std::vector<TokenEntry> entries, ParseTokenFile(content));
                 authenticator_->Replace(std::move(entries));
                 return absl::OkStatus();
               });
  }
  if (!options_.api_key_file.empty()) {
    files_.Add("api_key_file", options_.api_key_file, std::move(key),
               [this](const std::string& content) -> absl::Status {
                 ASSIGN_OR_RETURN(std::string fresh, CheckedKey(content));
                 host_.SetApiKey(std::move(fresh));
                 return absl::OkStatus();
               });
  }
  if (tls_ != nullptr) {
    const TlsPems pems = tls_->pems();
    // Whichever changes: they count together.
    const auto reload = [this](const std::string&) { return tls_->Reload(); };
    files_.Add("tls_cert_file", options_.tls.cert_file, pems.cert, reload);
    files_.Add("tls_key_file", options_.tls.key_file, pems.key, reload);
    if (!options_.tls.client_ca_file.empty()) {
      files_.Add("client_ca_file", options_.tls.client_ca_file, pems.client_ca, reload);
    }
  }
  files_.Start();
}

AdminAnswer Server::Liveness() {
  for (Lane* lane : services_->lanes().all()) {
    auto answered = std::make_shared<std::promise<void>>();
    std::future<void> future = answered->get_future();
    lane->loop.Post([answered] { answered->set_value(); });
    if (future.wait_for(kLoopAnswers) != std::future_status::ready) {
      return {.status = 503, .body = "an event loop does not answer\n"};
    }
  }
  return {.body = "ok\n"};
}

AdminAnswer Server::Readiness() const {
  return ready_ ? AdminAnswer{.body = "ready\n"}
                : AdminAnswer{.status = 503, .body = "not ready\n"};
}

void Server::MarkNotReady() {
  ready_ = false;
  if (server_ == nullptr) return;
  if (auto* health = server_->GetHealthCheckService(); health != nullptr) {
    health->SetServingStatus(false);
  }
  if (health_ != nullptr) health_->MarkNotReady();
}

bool Server::Shutdown(absl::Duration grace) {
  if (std::exchange(down_, true)) return host_.live() == 0;
  MarkNotReady();
  if (server_ != nullptr) ShutdownCalls(*server_, host_, grace);
  services_->Drain(std::max(grace, absl::Seconds(1)));
  admin_.reset();
  health_.reset();
  tick_.reset();
  server_.reset();
  return host_.live() == 0;
}

void Server::DumpCalls() {
  const std::vector<LiveCall> calls = host_.LiveCalls();
  log_.Write(LogLevel::kInfo, "running calls", {{"count", std::to_string(calls.size())}});
  for (const LiveCall& call : calls) {
    log_.Write(LogLevel::kInfo, "running call",
               {{"method", call.method},
                {"age", absl::FormatDuration(absl::Trunc(call.age, absl::Milliseconds(1)))},
                {"waiting_for", call.waiting_for}});
  }
}

}  // namespace bridge
