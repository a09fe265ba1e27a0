// SPDX-License-Identifier: Apache-2.0
#include "tests/frontends/cli/fake_bridge.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace bridge::cli {
grpc::Status ErrorStatus(pb::ErrorReason reason, grpc::StatusCode code, const std::string& message,
                         const std::map<std::string, std::string>& metadata,
                         double retry_after_seconds) {
  google::rpc::Status rich;
  rich.set_code(code);
  rich.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(pb::ErrorReason_Name(reason).substr(std::string("ERROR_REASON_").size()));
  info.set_domain("sandbox.bridge.v1");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  rich.add_details()->PackFrom(info);
  if (retry_after_seconds >= 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(static_cast<int64_t>(retry_after_seconds));
    rich.add_details()->PackFrom(retry);
  }
  return {code, message, rich.SerializeAsString()};
}

pb::ExecEvent Started(const std::string& exec_id, pb::Fidelity fidelity) {
  pb::ExecEvent event;
  event.mutable_started()->set_exec_id(exec_id);
  event.mutable_started()->set_fidelity(fidelity);
  return event;
}

pb::ExecEvent Output(pb::OutputStream stream, const std::string& data, int64_t offset) {
  pb::ExecEvent event;
  auto* output = event.mutable_output_batch()->add_outputs();
  output->set_stream(stream);
  output->set_data(data);
  output->set_offset(offset);
  return event;
}

pb::ExecEvent Exited(int exit_code) {
  pb::Outcome outcome;
  outcome.set_exit_code(exit_code);
  return Ended(outcome);
}

pb::ExecEvent Ended(const pb::Outcome& outcome) {
  pb::ExecEvent event;
  *event.mutable_exited()->mutable_outcome() = outcome;
  return event;
}

pb::ExecEvent Drained() {
  pb::ExecEvent event;
  event.mutable_drained();
  return event;
}

template <typename Request, typename Response>
grpc::Status FakeBridge::Serve(const char* name, grpc::ServerContext* context,
                               const Handler<Request, Response>& handler, const Request* request,
                               Response* response) {
  Record(name, *context);
  if (!handler) return {grpc::StatusCode::UNIMPLEMENTED, ""};
  return handler(*request, response);
}

class FakeBridge::Sandboxes final : public pb::SandboxService::Service {
 public:
  explicit Sandboxes(FakeBridge& fake) : fake_(fake) {}
  grpc::Status CreateSandbox(grpc::ServerContext* context, const pb::CreateSandboxRequest* request,
                             pb::CreateSandboxResponse* response) override {
    return fake_.Serve("CreateSandbox", context, fake_.on_create, request, response);
  }
  grpc::Status GetSandbox(grpc::ServerContext* context, const pb::GetSandboxRequest* request,
                          pb::Sandbox* response) override {
    return fake_.Serve("GetSandbox", context, fake_.on_get, request, response);
  }
  grpc::Status ListSandboxes(grpc::ServerContext* context, const pb::ListSandboxesRequest* request,
                             pb::ListSandboxesResponse* response) override {
    return fake_.Serve("ListSandboxes", context, fake_.on_list, request, response);
  }
  grpc::Status DeleteSandbox(grpc::ServerContext* context, const pb::DeleteSandboxRequest* request,
                             pb::DeleteSandboxResponse* response) override {
    return fake_.Serve("DeleteSandbox", context, fake_.on_delete, request, response);
  }
  grpc::Status SetExpiration(grpc::ServerContext* context, const pb::SetExpirationRequest* request,
                             pb::SetExpirationResponse* response) override {
    return fake_.Serve("SetExpiration", context, fake_.on_renew, request, response);
  }
  grpc::Status PauseSandbox(grpc::ServerContext* context, const pb::PauseSandboxRequest* request,
                            pb::PauseSandboxResponse* response) override {
    return fake_.Serve("PauseSandbox", context, fake_.on_pause, request, response);
  }
  grpc::Status ResumeSandbox(grpc::ServerContext* context, const pb::ResumeSandboxRequest* request,
                             pb::ResumeSandboxResponse* response) override {
    return fake_.Serve("ResumeSandbox", context, fake_.on_resume, request, response);
  }
  grpc::Status GetEndpoint(grpc::ServerContext* context, const pb::GetEndpointRequest* request,
                           pb::Endpoint* response) override {
    return fake_.Serve("GetEndpoint", context, fake_.on_endpoint, request, response);
  }
  grpc::Status CreateSignedEndpoint(grpc::ServerContext* context,
                                    const pb::CreateSignedEndpointRequest* request,
                                    pb::Endpoint* response) override {
    return fake_.Serve("CreateSignedEndpoint", context, fake_.on_signed_endpoint, request,
                       response);
  }
  grpc::Status GetDiagnostics(grpc::ServerContext* context,
                              const pb::GetDiagnosticsRequest* request,
                              pb::GetDiagnosticsResponse* response) override {
    return fake_.Serve("GetDiagnostics", context, fake_.on_diagnostics, request, response);
  }

 private:
  FakeBridge& fake_;
};

class FakeBridge::Exec final : public pb::ExecService::Service {
 public:
  explicit Exec(FakeBridge& fake) : fake_(fake) {}
  grpc::Status Execute(grpc::ServerContext* context, const pb::ExecuteRequest* request,
                       ExecWriter* writer) override {
    fake_.Record("Execute", *context);
    if (!fake_.on_execute) return {grpc::StatusCode::UNIMPLEMENTED, ""};
    return fake_.on_execute(context, *request, writer);
  }
  grpc::Status AttachExec(grpc::ServerContext* context, const pb::AttachExecRequest* request,
                          ExecWriter* writer) override {
    fake_.Record("AttachExec", *context);
    if (!fake_.on_attach) return {grpc::StatusCode::UNIMPLEMENTED, ""};
    return fake_.on_attach(context, *request, writer);
  }
  grpc::Status SignalExec(grpc::ServerContext* context, const pb::SignalExecRequest* request,
                          pb::SignalExecResponse* response) override {
    return fake_.Serve("SignalExec", context, fake_.on_signal, request, response);
  }
  grpc::Status Run(grpc::ServerContext* context, const pb::RunRequest* request,
                   pb::RunResponse* response) override {
    return fake_.Serve("Run", context, fake_.on_run, request, response);
  }

 private:
  FakeBridge& fake_;
};

class FakeBridge::Processes final : public pb::ProcessService::Service {
 public:
  explicit Processes(FakeBridge& fake) : fake_(fake) {}
  grpc::Status ListProcesses(grpc::ServerContext* context, const pb::ListProcessesRequest* request,
                             pb::ListProcessesResponse* response) override {
    return fake_.Serve("ListProcesses", context, fake_.on_processes, request, response);
  }
  grpc::Status StartProcess(grpc::ServerContext* context, const pb::StartProcessRequest* request,
                            pb::StartProcessResponse* response) override {
    return fake_.Serve("StartProcess", context, fake_.on_start_process, request, response);
  }
  grpc::Status AttachProcess(grpc::ServerContext* context, ProcessStream* stream) override {
    fake_.Record("AttachProcess", *context);
    if (!fake_.on_attach_process) return {grpc::StatusCode::UNIMPLEMENTED, ""};
    return fake_.on_attach_process(context, stream);
  }
  grpc::Status DeleteProcess(grpc::ServerContext* context, const pb::DeleteProcessRequest* request,
                             pb::DeleteProcessResponse* response) override {
    return fake_.Serve("DeleteProcess", context, fake_.on_delete_process, request, response);
  }
  grpc::Status SignalProcess(grpc::ServerContext* context, const pb::SignalProcessRequest* request,
                             pb::SignalProcessResponse* response) override {
    return fake_.Serve("SignalProcess", context, fake_.on_signal_process, request, response);
  }

 private:
  FakeBridge& fake_;
};

class FakeBridge::Bridge final : public pb::BridgeService::Service {
 public:
  explicit Bridge(FakeBridge& fake) : fake_(fake) {}
  grpc::Status GetServerInfo(grpc::ServerContext* context, const pb::GetServerInfoRequest* request,
                             pb::ServerInfo* response) override {
    return fake_.Serve("GetServerInfo", context, fake_.on_server_info, request, response);
  }
  grpc::Status GetCapabilities(grpc::ServerContext* context,
                               const pb::GetCapabilitiesRequest* request,
                               pb::GetCapabilitiesResponse* response) override {
    return fake_.Serve("GetCapabilities", context, fake_.on_capabilities, request, response);
  }

 private:
  FakeBridge& fake_;
};

FakeBridge::FakeBridge(const std::string& listen,
                       std::shared_ptr<grpc::ServerCredentials> credentials)
    : sandboxes_(std::make_unique<Sandboxes>(*this)),
      exec_(std::make_unique<Exec>(*this)),
      processes_(std::make_unique<Processes>(*this)),
      bridge_(std::make_unique<Bridge>(*this)) {
  grpc::ServerBuilder builder;
  int port = 0;
  if (!credentials) credentials = grpc::InsecureServerCredentials();
  builder.AddListeningPort(listen.empty() ? "127.0.0.1:0" : listen, credentials, &port);
  builder.RegisterService(sandboxes_.get());
  builder.RegisterService(exec_.get());
  builder.RegisterService(processes_.get());
  builder.RegisterService(bridge_.get());
  server_ = builder.BuildAndStart();
  address_ = listen.empty() ? "127.0.0.1:" + std::to_string(port) : listen;
}

FakeBridge::~FakeBridge() { Stop(); }

void FakeBridge::Stop() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeBridge::WillSend(std::vector<pb::ExecEvent> events) {
  on_execute = [events = std::move(events)](grpc::ServerContext*, const pb::ExecuteRequest&,
                                            ExecWriter* writer) {
    for (const pb::ExecEvent& event : events) writer->Write(event);
    return grpc::Status::OK;
  };
}

std::vector<std::string> FakeBridge::calls() const {
  const std::lock_guard lock(mu_);
  return calls_;
}

std::string FakeBridge::authorization() const {
  const std::lock_guard lock(mu_);
  return authorization_;
}

bool FakeBridge::WaitForCall(const std::string& name) const {
  std::unique_lock lock(mu_);
  return called_.wait_for(lock, std::chrono::seconds(10), [&] {
    return std::find(calls_.begin(), calls_.end(), name) != calls_.end();
  });
}

void FakeBridge::Record(const std::string& name, const grpc::ServerContext& context) {
  {
    const std::lock_guard lock(mu_);
    calls_.push_back(name);
    const auto found = context.client_metadata().find("authorization");
    authorization_ = found == context.client_metadata().end()
                         ? ""
                         : std::string(found->second.data(), found->second.size());
  }
  called_.notify_all();
}

}  // namespace bridge::cli
