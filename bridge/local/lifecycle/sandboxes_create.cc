// SPDX-License-Identifier: Apache-2.0
//
// How a sandbox is made. (The rest of the class is in sandboxes.cc.)
#include <unistd.h>

#include <random>
#include <utility>

#include "bridge/base/read_file.h"
#include "bridge/local/api/rules.h"
#include "bridge/local/http/socket.h"
#include "bridge/local/lifecycle/sandboxes.h"

namespace bridge::local::lifecycle {
namespace {

constexpr char kPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string RandomHex(int digits) {
  thread_local std::random_device device;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (int i = 0; i < digits; ++i) hex.push_back(kDigits[device() % 16]);
  return hex;
}

// A version-4 UUID.
std::string NewId() {
  std::string id = RandomHex(8) + "-" + RandomHex(4) + "-4" + RandomHex(3) + "-" + RandomHex(4) +
                   "-" + RandomHex(12);
  id[19] = "89ab"[static_cast<size_t>(id[19] % 4)];
  return id;
}

// What a container of a plain image has, under what the request says.
std::map<std::string, std::string> Environment(const api::CreateRequest& request,
                                               const std::string& id) {
  std::map<std::string, std::string> env = {{"PATH", kPath}, {"HOME", "/root"}};
  for (const auto& [key, value] : request.env) env[key] = value;
  env["OPENSANDBOX_ID"] = id;
  return env;
}

runtime::BootstrapSpec SpecOf(const SandboxesOptions& options, const SandboxRecord& record) {
  runtime::BootstrapSpec spec;
  for (const auto& [key, value] : record.env) spec.env.push_back(key + "=" + value);
  spec.env.push_back("HOSTNAME=" + record.hostname);
  const bool walled = options.isolation != runtime::Isolation::kNone;
  spec.execd = {walled ? runtime::kSandboxExecd : options.execd,
                "--listen-fd=" + std::to_string(runtime::kListenFd), "--port=44772",
                "--compat=" + options.compat};
  spec.entrypoint = record.entrypoint;
  return spec;
}

runtime::CgroupLimits LimitsOf(const SandboxRecord& record) {
  runtime::CgroupLimits limits;
  for (const auto& [name, value] : record.resource_limits) {
    if (name == "cpu") limits.cpu_millis = api::ParseCpuMillis(value);
    if (name == "memory") limits.memory_bytes = api::ParseMemoryBytes(value);
  }
  return limits;
}

std::vector<runtime::Bind> HostMounts() {
  return runtime::ParseHostMounts(ReadFile("/proc/self/mountinfo").value_or(""));
}

Failure StartFailure(const std::string& why) {
  return api::CodeFailure(500, "DOCKER::SANDBOX_START_FAILED",
                          "Failed to create or start container: " + why);
}

}  // namespace

SandboxRecord Sandboxes::NewRecord(const api::CreateRequest& request) const {
  SandboxRecord record;
  record.id = NewId();
  record.hostname = RandomHex(12);
  record.image = request.image;
  record.entrypoint = request.entrypoint;
  record.env = Environment(request, record.id);
  record.metadata = request.metadata;
  record.extensions = request.KeptExtensions();
  record.resource_limits = request.resource_limits;
  record.platform = request.platform;
  record.created_at = Now();
  if (request.timeout_seconds) {
    record.expires_at = record.created_at + absl::Seconds(*request.timeout_seconds);
  }
  return record;
}

std::optional<Failure> Sandboxes::Create(const api::CreateRequest& request,
                                         SandboxRecord* created) {
  if (auto failure = api::CheckCreateRequest(request, options_.limits)) return failure;
  SandboxRecord record = NewRecord(request);
  if (auto failure = ResolveImage(options_.storage, request.image, &record.root)) return failure;
  VolumePlan volumes;
  if (auto failure = PrepareVolumes(options_.storage, *state_, options_.isolation, request.volumes,
                                    &volumes)) {
    state_->RemoveVolumes(volumes.delete_with_sandbox);
    return failure;
  }
  record.volumes_to_delete = volumes.delete_with_sandbox;
  auto sandbox = std::make_shared<Sandbox>();
  sandbox->id = record.id;
  if (auto failure = Start(volumes, &record, sandbox.get())) {
    state_->RemoveVolumes(volumes.delete_with_sandbox);
    state_->Remove(record.id);
    return failure;
  }
  *created = record;
  sandbox->record = std::move(record);
  Save(*sandbox);
  Insert(sandbox);
  return std::nullopt;
}

std::optional<Failure> Sandboxes::Start(const VolumePlan& volumes, SandboxRecord* record,
                                        Sandbox* sandbox) {
  if (absl::Status made = state_->MakeSandboxDir(record->id); !made.ok()) {
    return StartFailure(std::string(made.message()));
  }
  record->container_at = Now();
  int port = 0;
  const absl::StatusOr<int> listen_fd = http::ListenTcp(options_.host, &port);
  if (!listen_fd.ok()) return StartFailure(std::string(listen_fd.status().message()));
  record->execd_port = port;

  runtime::LaunchRequest launch;
  launch.id = record->id;
  launch.dir = state_->SandboxDir(record->id);
  launch.root.isolation = options_.isolation;
  launch.root.root = record->root;
  launch.root.execd = options_.execd;
  launch.root.bootstrap = options_.bootstrap;
  launch.root.hostname = record->hostname;
  launch.root.die_with_parent = !options_.keep;
  launch.root.disk_bytes = options_.disk_bytes;
  launch.root.binds = volumes.binds;
  if (record->root == "/") launch.root.host_mounts = HostMounts();
  launch.spec = SpecOf(options_, *record);
  launch.limits = LimitsOf(*record);
  launch.listen_fd = *listen_fd;
  absl::StatusOr<std::unique_ptr<runtime::SandboxProcess>> process =
      runtime::SandboxProcess::Launch(spawner_, cgroups_, std::move(launch));
  close(*listen_fd);
  if (!process.ok()) return StartFailure(std::string(process.status().message()));
  record->started_at = Now();
  record->process = (*process)->record();
  sandbox->process = *std::move(process);
  return std::nullopt;
}

}  // namespace bridge::local::lifecycle
