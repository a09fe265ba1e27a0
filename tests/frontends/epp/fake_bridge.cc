// SPDX-License-Identifier: Apache-2.0
#include "tests/frontends/epp/fake_bridge.h"

#include <string>
#include <utility>

#include "bridge/service/status.h"

namespace bridge::epp {
namespace {

template <class Function, class... Arguments>
grpc::Status Serve(const Function& function, Arguments&&... arguments) {
  if (!function) return {grpc::StatusCode::UNIMPLEMENTED, "the test did not set this method"};
  return ToGrpcStatus(function(std::forward<Arguments>(arguments)...));
}

class FakeLink final : public BridgeLink {
 public:
  FakeLink(FakeBridge& bridge, std::shared_ptr<grpc::Channel> channel)
      : bridge_(bridge), channel_(std::move(channel)) {}
  std::shared_ptr<grpc::Channel> channel() override { return channel_; }
  std::string name() const override { return "the fake bridge"; }
  bool Settle(absl::Duration bound) override { return bridge_.settle(bound); }

 private:
  FakeBridge& bridge_;
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace

#define UNARY(Method, member, Request, Response)                                \
  grpc::Status Method(grpc::ServerContext* context, const v1::Request* request, \
                      v1::Response* response) override {                        \
    return Serve(bridge_.member, *request, response, context);                  \
  }
#define STREAMING(Method, member, Request, Response)                            \
  grpc::Status Method(grpc::ServerContext* context, const v1::Request* request, \
                      grpc::ServerWriter<v1::Response>* writer) override {      \
    return Serve(bridge_.member, *request, writer, context);                    \
  }

class FakeBridge::Services {
 public:
  explicit Services(FakeBridge& bridge)
      : sandboxes(bridge), execs(bridge), processes(bridge), files(bridge) {}

  struct Sandboxes final : v1::SandboxService::Service {
    explicit Sandboxes(FakeBridge& bridge) : bridge_(bridge) {}
    UNARY(CreateSandbox, create, CreateSandboxRequest, CreateSandboxResponse)
    UNARY(GetSandbox, get, GetSandboxRequest, Sandbox)
    UNARY(ListSandboxes, list, ListSandboxesRequest, ListSandboxesResponse)
    UNARY(DeleteSandbox, remove, DeleteSandboxRequest, DeleteSandboxResponse)
    UNARY(SetExpiration, set_expiration, SetExpirationRequest, SetExpirationResponse)
    UNARY(PauseSandbox, pause, PauseSandboxRequest, PauseSandboxResponse)
    UNARY(ResumeSandbox, resume, ResumeSandboxRequest, ResumeSandboxResponse)
    UNARY(GetEndpoint, endpoint, GetEndpointRequest, Endpoint)
    FakeBridge& bridge_;
  } sandboxes;

  struct Execs final : v1::ExecService::Service {
    explicit Execs(FakeBridge& bridge) : bridge_(bridge) {}
    STREAMING(Execute, execute, ExecuteRequest, ExecEvent)
    UNARY(SignalExec, signal_exec, SignalExecRequest, SignalExecResponse)
    FakeBridge& bridge_;
  } execs;

  struct Processes final : v1::ProcessService::Service {
    explicit Processes(FakeBridge& bridge) : bridge_(bridge) {}
    UNARY(ListProcesses, list_processes, ListProcessesRequest, ListProcessesResponse)
    UNARY(SignalProcess, signal_process, SignalProcessRequest, SignalProcessResponse)
    UNARY(StartProcess, start_process, StartProcessRequest, StartProcessResponse)
    UNARY(DeleteProcess, delete_process, DeleteProcessRequest, DeleteProcessResponse)
    grpc::Status AttachProcess(
        grpc::ServerContext* context,
        grpc::ServerReaderWriter<v1::ProcessEvent, v1::AttachProcessRequest>* stream) override {
      return Serve(bridge_.attach_process, stream, context);
    }
    FakeBridge& bridge_;
  } processes;

  struct Files final : v1::FileService::Service {
    explicit Files(FakeBridge& bridge) : bridge_(bridge) {}
    UNARY(Stat, stat, StatRequest, FileInfo)
    STREAMING(ReadFile, read_file, ReadFileRequest, ReadFileChunk)
    UNARY(WriteSmallFile, write_small_file, WriteSmallFileRequest, WriteFileResponse)
    STREAMING(ListDirectory, list_directory, ListDirectoryRequest, FileInfoBatch)
    STREAMING(Search, search, SearchRequest, FileInfoBatch)
    UNARY(MakeDirectory, make_directory, MakeDirectoryRequest, MakeDirectoryResponse)
    UNARY(Remove, remove_file, RemoveRequest, RemoveResponse)
    UNARY(Move, move, MoveRequest, MoveResponse)
    UNARY(SetAttributes, set_attributes, SetAttributesRequest, FileInfo)
    grpc::Status WriteFile(grpc::ServerContext* context,
                           grpc::ServerReader<v1::WriteFileChunk>* reader,
                           v1::WriteFileResponse* response) override {
      return Serve(bridge_.write_file, reader, response, context);
    }
    FakeBridge& bridge_;
  } files;
};

#undef UNARY
#undef STREAMING

FakeBridge::FakeBridge() : services_(std::make_unique<Services>(*this)) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(16 << 20);
  builder.RegisterService(&services_->sandboxes);
  builder.RegisterService(&services_->execs);
  builder.RegisterService(&services_->processes);
  builder.RegisterService(&services_->files);
  server_ = builder.BuildAndStart();
}

FakeBridge::~FakeBridge() { server_->Shutdown(); }

LinkFactory FakeBridge::link_factory() {
  return [this](const Config&) -> absl::StatusOr<std::unique_ptr<BridgeLink>> {
    ++links;
    return std::unique_ptr<BridgeLink>(
        std::make_unique<FakeLink>(*this, server_->InProcessChannel({})));
  };
}

}  // namespace bridge::epp
