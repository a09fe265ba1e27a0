// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/services.h"

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/version.h"
#include "bridge/net/task.h"
#include "bridge/server/facts.h"
#include "bridge/service/bridge_service.h"
#include "bridge/service/exec_service.h"
#include "bridge/service/file_service.h"
#include "bridge/service/isolation_service.h"
#include "bridge/service/malformed.h"
#include "bridge/service/process_service.h"
#include "bridge/service/sandbox_service.h"
#include "bridge/service/unsupported.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

v1::ServerInfo InfoOf(const UpstreamOptions& upstream, const CallHost& host) {
  v1::ServerInfo info;
  info.set_version(kVersion);
  info.mutable_upstream()->set_kind(upstream.kind);
  info.mutable_upstream()->set_isolation(upstream.isolation);
  auto& limits = *info.mutable_limits();
  limits.set_max_message_bytes(1 << 20);
  limits.set_max_stdin_bytes(8 << 20);
  limits.set_max_run_output_bytes(1 << 20);
  limits.set_max_small_file_bytes(1 << 20);
  limits.set_max_concurrent_streams(static_cast<int32_t>(host.limits().global.streams));
  limits.set_min_ttl_seconds(60);
  return info;
}

}  // namespace

// The services, in the order in which they are listed.
class Services::Parts {
 public:
  Parts(const ServicesOptions& options, CallHost& host, Lanes& lanes)
      : facts(lanes.control.clients, lanes.control.background, options.upstream.kind == "local"),
        unsupported(host, lanes.control.loop) {
    Add(v1::BridgeService::service_full_name(),
        std::make_unique<BridgeServiceImpl>(
            BridgeServiceImpl::Deps{.host = host,
                                    .control = lanes.control.loop,
                                    .facts = facts,
                                    .info = InfoOf(options.upstream, host)}));
    Add(v1::SandboxService::service_full_name(),
        std::make_unique<SandboxServiceImpl>(
            SandboxServiceImpl::Deps{.host = host,
                                     .control = lanes.control.loop,
                                     .sandboxes = lanes.control.clients.sandboxes,
                                     .control_daemons = lanes.control.clients.daemons,
                                     .streams = lanes.streams.loop,
                                     .stream_daemons = lanes.streams.clients.daemons}));
    Add(v1::ExecService::service_full_name(),
        std::make_unique<ExecServiceImpl>(
            ExecServiceImpl::Deps{.host = host,
                                  .control = lanes.control.loop,
                                  .control_execs = lanes.control.clients.execs,
                                  .streams = lanes.streams.loop,
                                  .stream_execs = lanes.streams.clients.execs}));
    Add(v1::FileService::service_full_name(),
        std::make_unique<FileServiceImpl>(
            FileServiceImpl::Deps{.host = host,
                                  .control = lanes.control.loop,
                                  .control_files = lanes.control.clients.files,
                                  .streams = lanes.streams.loop,
                                  .stream_files = lanes.streams.clients.files}));
    Add(v1::ProcessService::service_full_name(),
        std::make_unique<ProcessServiceImpl>(
            ProcessServiceImpl::Deps{.host = host,
                                     .control = lanes.control.loop,
                                     .control_processes = lanes.control.clients.processes,
                                     .streams = lanes.streams.loop,
                                     .stream_processes = lanes.streams.clients.processes}));
    Add(v1::IsolationService::service_full_name(),
        std::make_unique<IsolationServiceImpl>(
            IsolationServiceImpl::Deps{.host = host,
                                       .control = lanes.control.loop,
                                       .control_sessions = lanes.control.clients.isolation,
                                       .streams = lanes.streams.loop,
                                       .stream_sessions = lanes.streams.clients.isolation}));
  }

  UpstreamFacts facts;
  UnsupportedMethods unsupported;
  std::vector<std::pair<std::string, std::unique_ptr<grpc::Service>>> services;

 private:
  void Add(const char* name, std::unique_ptr<grpc::Service> service) {
    services.emplace_back(name, std::move(service));
  }
};

absl::StatusOr<std::unique_ptr<Services>> Services::Create(ServicesOptions options,
                                                           CallHost& host) {
  if (options.upstream.url.empty()) {
    return InvalidField("upstream", "is empty: give the URL of an OpenSandbox server, or local");
  }
  ASSIGN_OR_RETURN(BaseUrl url, ParseBaseUrl(options.upstream.url, "upstream"));
  const UpstreamClientsOptions clients{.server = std::move(url),
                                       .through_server = options.upstream.through_server};
  return std::unique_ptr<Services>(new Services(std::move(options), clients, host));
}

Services::Services(ServicesOptions options, const UpstreamClientsOptions& clients, CallHost& host)
    : lanes_(*options.clock, options.upstream.http, clients),
      parts_(std::make_unique<Parts>(options, host, lanes_)) {}

Services::~Services() = default;

void Services::Register(grpc::ServerBuilder& builder) {
  for (auto& [name, service] : parts_->services) builder.RegisterService(service.get());
  builder.RegisterCallbackGenericService(&parts_->unsupported);
  ExplainMalformedRequests(builder);
}

std::vector<std::string> Services::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, service] : parts_->services) names.push_back(name);
  return names;
}

int Services::BackgroundTasks() {
  int running = 0;
  for (Lane* lane : lanes_.all()) {
    auto answer = std::make_shared<std::promise<int>>();
    std::future<int> future = answer->get_future();
    lane->loop.Post([lane, answer] { answer->set_value(lane->background.running()); });
    if (future.wait_for(std::chrono::seconds(1)) == std::future_status::ready) {
      running += future.get();
    }
  }
  return running;
}

void Services::Drain(absl::Duration bound) {
  std::mutex mu;
  std::condition_variable changed;
  size_t left = lanes_.all().size();
  for (Lane* lane : lanes_.all()) {
    lane->loop.Post([lane, bound, &mu, &changed, &left] {
      Spawn(
          nullptr, [lane, bound] { return lane->background.Drain(lane->loop, bound); },
          [&mu, &changed, &left] {
            std::lock_guard<std::mutex> lock(mu);
            --left;
            changed.notify_one();  // under the lock: the waiter's frame is gone right after it
          });
    });
  }
  std::unique_lock<std::mutex> lock(mu);
  changed.wait(lock, [&left] { return left == 0; });
}

}  // namespace bridge
