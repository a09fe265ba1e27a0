// SPDX-License-Identifier: Apache-2.0
//
// service/process_service.h — ProcessService: validate, ask, pass on. AttachProcess on the streams
// lane, the rest on the control lane.
#pragma once

#include "bridge/opensandbox/process_client.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"

namespace bridge {

class ProcessServiceImpl final : public sandbox::bridge::v1::ProcessService::CallbackService {
 public:
  // One client a lane. All of it outlives the gRPC server.
  struct Deps {
    CallHost& host;
    EventLoop& control;
    ProcessClient& control_processes;
    EventLoop& streams;
    ProcessClient& stream_processes;
  };
  explicit ProcessServiceImpl(Deps deps) : deps_(deps) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reply = grpc::ServerUnaryReactor;

  // clang-format off
  Reply* StartProcess(Context*, const sandbox::bridge::v1::StartProcessRequest*, sandbox::bridge::v1::StartProcessResponse*) override;
  grpc::ServerBidiReactor<sandbox::bridge::v1::AttachProcessRequest, sandbox::bridge::v1::ProcessEvent>* AttachProcess(Context*) override;
  Reply* ListProcesses(Context*, const sandbox::bridge::v1::ListProcessesRequest*, sandbox::bridge::v1::ListProcessesResponse*) override;
  Reply* SignalProcess(Context*, const sandbox::bridge::v1::SignalProcessRequest*, sandbox::bridge::v1::SignalProcessResponse*) override;
  Reply* GetProcess(Context*, const sandbox::bridge::v1::GetProcessRequest*, sandbox::bridge::v1::ProcessInfo*) override;
  Reply* DeleteProcess(Context*, const sandbox::bridge::v1::DeleteProcessRequest*, sandbox::bridge::v1::DeleteProcessResponse*) override;
  // clang-format on

  const Deps deps_;
};

}  // namespace bridge
