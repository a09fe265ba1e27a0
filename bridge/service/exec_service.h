// SPDX-License-Identifier: Apache-2.0
//
// service/exec_service.h — ExecService: validate, start, pass on what comes.
// Streams and Run on the streams loop, SignalExec and GetExec on the control loop.
#pragma once

#include "bridge/opensandbox/exec_client.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"

namespace bridge {

class ExecServiceImpl final : public sandbox::bridge::v1::ExecService::CallbackService {
 public:
  // One client a loop. All of it outlives the gRPC server.
  struct Deps {
    CallHost& host;
    EventLoop& control;
    ExecClient& control_execs;
    EventLoop& streams;
    ExecClient& stream_execs;
  };
  explicit ExecServiceImpl(Deps deps) : deps_(deps) {}

 private:
  using ExecEvent = sandbox::bridge::v1::ExecEvent;
  template <class Message>
  using Ref = const Message&;

  grpc::ServerWriteReactor<ExecEvent>* Execute(
      grpc::CallbackServerContext* context,
      const sandbox::bridge::v1::ExecuteRequest* request) override;
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context,
                                const sandbox::bridge::v1::RunRequest* request,
                                sandbox::bridge::v1::RunResponse* response) override;
  grpc::ServerWriteReactor<ExecEvent>* AttachExec(
      grpc::CallbackServerContext* context,
      const sandbox::bridge::v1::AttachExecRequest* request) override;
  grpc::ServerUnaryReactor* SignalExec(grpc::CallbackServerContext* context,
                                       const sandbox::bridge::v1::SignalExecRequest* request,
                                       sandbox::bridge::v1::SignalExecResponse* response) override;
  grpc::ServerUnaryReactor* GetExec(grpc::CallbackServerContext* context,
                                    const sandbox::bridge::v1::GetExecRequest* request,
                                    sandbox::bridge::v1::ExecInfo* response) override;

  Task<absl::Status> HandleExecute(Writer<ExecEvent>& call,
                                   Ref<sandbox::bridge::v1::ExecuteRequest> request);
  Task<absl::Status> HandleRun(Unary& call, Ref<sandbox::bridge::v1::RunRequest> request,
                               sandbox::bridge::v1::RunResponse& response);
  Task<absl::Status> HandleAttach(Writer<ExecEvent>& call,
                                  Ref<sandbox::bridge::v1::AttachExecRequest> request);
  Task<absl::Status> HandleSignal(Unary& call, Ref<sandbox::bridge::v1::SignalExecRequest> request,
                                  sandbox::bridge::v1::SignalExecResponse& response);
  Task<absl::Status> HandleGet(Unary& call, Ref<sandbox::bridge::v1::GetExecRequest> request,
                               sandbox::bridge::v1::ExecInfo& response);

  const Deps deps_;
};

}  // namespace bridge
