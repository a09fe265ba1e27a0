// SPDX-License-Identifier: Apache-2.0
//
// A bridge in the test's own process: real gRPC on a loopback port, answers from the test.
//
// Handlers run on gRPC's threads; set them before the first call. What was asked is recorded.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "sandbox/bridge/v1/bridge.grpc.pb.h"
#include "sandbox/bridge/v1/errors.pb.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"

namespace bridge::cli {

namespace pb = sandbox::bridge::v1;

// A status as the real bridge sends it.
grpc::Status ErrorStatus(pb::ErrorReason reason, grpc::StatusCode code, const std::string& message,
                         const std::map<std::string, std::string>& metadata = {},
                         double retry_after_seconds = -1);

// Events of an exec.
pb::ExecEvent Started(const std::string& exec_id = "ex-1",
                      pb::Fidelity fidelity = pb::FIDELITY_BYTES);
pb::ExecEvent Output(pb::OutputStream stream, const std::string& data, int64_t offset = 0);
pb::ExecEvent Exited(int exit_code);
pb::ExecEvent Ended(const pb::Outcome& outcome);
pb::ExecEvent Drained();

class FakeBridge {
 public:
  using ExecWriter = grpc::ServerWriter<pb::ExecEvent>;
  using ExecuteHandler =
      std::function<grpc::Status(grpc::ServerContext*, const pb::ExecuteRequest&, ExecWriter*)>;
  using ProcessStream = grpc::ServerReaderWriter<pb::ProcessEvent, pb::AttachProcessRequest>;
  template <typename Request, typename Response>
  using Handler = std::function<grpc::Status(const Request&, Response*)>;

  // Empty: an unused loopback port; else a target such as "unix:/…". With `tls`: its credentials.
  explicit FakeBridge(const std::string& listen = "",
                      std::shared_ptr<grpc::ServerCredentials> credentials = nullptr);
  ~FakeBridge();

  // Handlers that were set before are seen by whoever calls there, a program of its own, too.
  const std::string& address() const {
    const std::lock_guard lock(mu_);
    return address_;
  }

  ExecuteHandler on_execute;
  std::function<grpc::Status(grpc::ServerContext*, const pb::AttachExecRequest&, ExecWriter*)>
      on_attach;
  Handler<pb::SignalExecRequest, pb::SignalExecResponse> on_signal;
  Handler<pb::RunRequest, pb::RunResponse> on_run;
  Handler<pb::CreateSandboxRequest, pb::CreateSandboxResponse> on_create;
  Handler<pb::GetSandboxRequest, pb::Sandbox> on_get;
  Handler<pb::ListSandboxesRequest, pb::ListSandboxesResponse> on_list;
  Handler<pb::DeleteSandboxRequest, pb::DeleteSandboxResponse> on_delete;
  Handler<pb::SetExpirationRequest, pb::SetExpirationResponse> on_renew;
  Handler<pb::PauseSandboxRequest, pb::PauseSandboxResponse> on_pause;
  Handler<pb::ResumeSandboxRequest, pb::ResumeSandboxResponse> on_resume;
  Handler<pb::GetEndpointRequest, pb::Endpoint> on_endpoint;
  Handler<pb::CreateSignedEndpointRequest, pb::Endpoint> on_signed_endpoint;
  Handler<pb::GetDiagnosticsRequest, pb::GetDiagnosticsResponse> on_diagnostics;
  Handler<pb::ListProcessesRequest, pb::ListProcessesResponse> on_processes;
  Handler<pb::StartProcessRequest, pb::StartProcessResponse> on_start_process;
  std::function<grpc::Status(grpc::ServerContext*, ProcessStream*)> on_attach_process;
  Handler<pb::DeleteProcessRequest, pb::DeleteProcessResponse> on_delete_process;
  Handler<pb::SignalProcessRequest, pb::SignalProcessResponse> on_signal_process;
  Handler<pb::GetServerInfoRequest, pb::ServerInfo> on_server_info;
  Handler<pb::GetCapabilitiesRequest, pb::GetCapabilitiesResponse> on_capabilities;

  // Cuts all calls and waits for their handlers. For those whose handlers use what ends before
  // this.
  void Stop();

  // Makes Execute send these events and end.
  void WillSend(std::vector<pb::ExecEvent> events);

  // "CreateSandbox", "Execute", … in order of arrival.
  std::vector<std::string> calls() const;
  // The authorization header of the last call.
  std::string authorization() const;
  // Waits until `name` was called; false after ten seconds.
  bool WaitForCall(const std::string& name) const;

  void Record(const std::string& name, const grpc::ServerContext& context);

 private:
  class Sandboxes;
  class Exec;
  class Processes;
  class Bridge;

  // Records the call and lets the handler answer it.
  template <typename Request, typename Response>
  grpc::Status Serve(const char* name, grpc::ServerContext* context,
                     const Handler<Request, Response>& handler, const Request* request,
                     Response* response);

  mutable std::mutex mu_;
  mutable std::condition_variable called_;
  std::vector<std::string> calls_;
  std::string authorization_;
  std::unique_ptr<Sandboxes> sandboxes_;
  std::unique_ptr<Exec> exec_;
  std::unique_ptr<Processes> processes_;
  std::unique_ptr<Bridge> bridge_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace bridge::cli
