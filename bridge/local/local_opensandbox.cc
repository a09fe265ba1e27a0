// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/local_opensandbox.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/local/lifecycle/execd_front.h"
#include "bridge/local/lifecycle/service.h"
#include "bridge/local/runtime/sandbox_process.h"

namespace bridge::local {
namespace {

namespace fs = std::filesystem;
using lifecycle::StateDir;
using runtime::Isolation;

absl::Status Unavailable(const std::string& message) {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, message);
}

// The first of `names` that is a file below the running program's directory.
std::string FindProgram(const std::vector<std::string>& names) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  // Only a Bazel test may find programs by its working directory.
  const bool in_test = getenv("TEST_SRCDIR") != nullptr;
  for (const fs::path& base : {self, in_test ? fs::path("bridge/local") : self}) {
    for (const std::string& name : names) {
      const fs::path path = base / name;
      if (fs::is_regular_file(path, error)) return fs::absolute(path, error);
    }
  }
  return "";
}

absl::Status FindPrograms(LocalOptions& options) {
  if (options.execd.empty()) options.execd = FindProgram({"execd", "execd/execd"});
  if (options.bootstrap.empty()) {
    options.bootstrap = FindProgram({"bootstrap", "runtime/bootstrap"});
  }
  for (const auto& [name, path] :
       {std::pair("execd", &options.execd), std::pair("bootstrap", &options.bootstrap)}) {
    if (path->empty() || access(path->c_str(), X_OK) != 0) {
      return Unavailable("the local OpenSandbox needs its program '" + std::string(name) + "'" +
                         (path->empty() ? " beside this one" : ": cannot execute " + *path) +
                         "; install it, or name it with --" + name);
    }
    std::error_code error;
    *path = fs::canonical(*path, error);
  }
  return absl::OkStatus();
}

// What an isolation level needs, when it does not work.
std::string Advice(Isolation isolation) {
  switch (isolation) {
    case Isolation::kOverlay:
      return "it needs root, the programs bwrap and unshare, and overlayfs";
    case Isolation::kBwrap:
      return "it needs the program bwrap and user namespaces (in a container, often a relaxed "
             "seccomp profile)";
    case Isolation::kNone:
      return "plain processes need nothing special";
  }
  return "";
}

absl::StatusOr<Isolation> ChooseIsolation(const LocalOptions& options, const StateDir& state) {
  std::vector<Isolation> levels = {Isolation::kOverlay, Isolation::kBwrap};
  if (options.isolation) {
    levels = {*options.isolation};
  } else if (geteuid() != 0) {
    levels = {Isolation::kBwrap};
  }
  const std::string scratch = state.path() + "/probe";
  std::string reasons;
  for (const Isolation level : levels) {
    std::error_code error;
    fs::create_directory(scratch, error);
    const absl::Status works = runtime::ProbeIsolation(level, options.bootstrap, scratch);
    fs::remove_all(scratch, error);
    if (works.ok()) return level;
    reasons += "; isolation '" + std::string(runtime::IsolationName(level)) +
               "' does not work here: " + std::string(works.message()) + " (" + Advice(level) + ")";
  }
  return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                   "this machine cannot run local sandboxes" + reasons +
                       ". --isolation=none runs them as plain processes, without any walls");
}

absl::StatusOr<std::unique_ptr<StateDir>> OpenState(const LocalOptions& options) {
  if (options.keep_sandboxes && options.state_dir.empty()) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                     "sandboxes can only be kept in a state directory: name one with --state_dir");
  }
  absl::StatusOr<std::unique_ptr<StateDir>> state =
      options.state_dir.empty()
          ? StateDir::OpenTemporary(lifecycle::DefaultStateParent(),
                                    [&options](const StateDir& dir) {
                                      options.log("cleaning up after an earlier run");
                                      lifecycle::SweepStateDir(dir);
                                    })
          : StateDir::Open(options.state_dir);
  if (state.ok()) return state;
  const std::string message(state.status().message());
  if (absl::IsFailedPrecondition(state.status())) {
    return MakeError(ErrorReason::ERROR_REASON_CONFLICT, message);
  }
  return Unavailable(message);
}

std::string MachineArch() {
  utsname name{};
  uname(&name);
  if (strcmp(name.machine, "x86_64") == 0) return "amd64";
  if (strcmp(name.machine, "aarch64") == 0) return "arm64";
  return name.machine;
}

lifecycle::SandboxesOptions SandboxesOptionsOf(const LocalOptions& options, Isolation isolation) {
  lifecycle::SandboxesOptions out;
  out.isolation = isolation;
  out.execd = options.execd;
  out.bootstrap = options.bootstrap;
  out.compat = options.compat;
  out.host = options.host;
  out.storage = {options.image_dir, !options.fail_on_missing_image, options.allowed_host_paths};
  if (options.max_timeout) {
    out.limits.max_timeout_seconds = absl::ToInt64Seconds(*options.max_timeout);
  }
  out.limits.cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  out.limits.arch = MachineArch();
  out.disk_bytes = options.disk_bytes;
  out.keep = options.keep_sandboxes;
  out.clock = options.clock;
  out.log = options.log;
  return out;
}

}  // namespace

class LocalOpenSandbox::Impl {
 public:
  Impl(const LocalOptions& options, Isolation isolation, std::unique_ptr<StateDir> state)
      : isolation_(isolation),
        fronts_(options.host, {recorder_.Hooks(faults::EXECD), injector_.Hooks(faults::EXECD)}),
        sandboxes_(SandboxesOptionsOf(options, isolation), std::move(state)),
        service_(sandboxes_, ServiceOptionsOf(options)) {}

  absl::Status Listen(const LocalOptions& options) {
    http::ServerOptions server;
    server.host = options.host;
    server.port = options.port;
    server.lower_case_headers = true;
    // A request may nest as deep as Python's stack allows, and is copied and written level by
    // level.
    server.stack_bytes = 4 << 20;
    server.idle_timeout = absl::Seconds(30);
    server.unix_time = [clock = options.clock] { return absl::ToUnixSeconds(clock->Now()); };
    server.hooks = {recorder_.Hooks(faults::LIFECYCLE), injector_.Hooks(faults::LIFECYCLE)};
    server.bad_request = {
        400, {{"content-type", "text/plain; charset=utf-8"}}, "Invalid HTTP request received."};
    absl::StatusOr<std::unique_ptr<http::Server>> started = http::Server::Start(
        std::move(server), [this](http::Exchange& exchange) { service_.Handle(exchange); });
    if (!started.ok()) {
      return Unavailable("cannot listen on " + options.host + ":" + std::to_string(options.port) +
                         ": " + std::string(started.status().message()));
    }
    server_ = *std::move(started);
    return absl::OkStatus();
  }

  // Requests in flight end before what they use does.
  ~Impl() { server_.reset(); }

  const http::Server& server() const { return *server_; }
  Isolation isolation() const { return isolation_; }
  faults::Recorder& recorder() { return recorder_; }
  faults::FaultInjector& injector() { return injector_; }

 private:
  lifecycle::ServiceOptions ServiceOptionsOf(const LocalOptions& options) {
    lifecycle::ServiceOptions out;
    out.api_key = options.api_key;
    const bool every_address = options.host == "0.0.0.0" || options.host == "::";
    if (!every_address) out.public_host = out.proxy.execd_host = options.host;
    out.proxy.shared_cookie_jar = options.shared_cookie_jar;
    if (options.intercept_execd) {
      out.proxy.execd_port = [this](const lifecycle::SandboxRecord& record) {
        return fronts_.PortOf(record);
      };
      out.on_deleted = [this](const std::string& id) { fronts_.Drop(id); };
    }
    return out;
  }

  const Isolation isolation_;
  faults::Recorder recorder_;
  faults::FaultInjector injector_;
  lifecycle::ExecdFronts fronts_;
  lifecycle::Sandboxes sandboxes_;
  lifecycle::Service service_;
  std::unique_ptr<http::Server> server_;
};

absl::StatusOr<std::unique_ptr<LocalOpenSandbox>> LocalOpenSandbox::Start(LocalOptions options) {
  RETURN_IF_ERROR(FindPrograms(options));
  ASSIGN_OR_RETURN(std::unique_ptr<StateDir> state, OpenState(options));
  ASSIGN_OR_RETURN(const Isolation isolation, ChooseIsolation(options, *state));
  if (isolation == Isolation::kNone) {
    options.log("WARNING: --isolation=none: sandboxes are plain processes with this user's rights");
  }
  auto impl = std::make_unique<Impl>(options, isolation, std::move(state));
  RETURN_IF_ERROR(impl->Listen(options));
  return std::unique_ptr<LocalOpenSandbox>(new LocalOpenSandbox(std::move(impl)));
}

LocalOpenSandbox::LocalOpenSandbox(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalOpenSandbox::~LocalOpenSandbox() = default;

std::string LocalOpenSandbox::url() const { return impl_->server().url(); }
int LocalOpenSandbox::port() const { return impl_->server().port(); }
Isolation LocalOpenSandbox::isolation() const { return impl_->isolation(); }
faults::Recorder& LocalOpenSandbox::recorder() { return impl_->recorder(); }
faults::FaultInjector& LocalOpenSandbox::faults() { return impl_->injector(); }
absl::Status LocalOpenSandbox::set_fault_plan(std::string_view text) {
  return impl_->injector().SetPlanText(text);
}

}  // namespace bridge::local
