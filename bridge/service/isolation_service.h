// SPDX-License-Identifier: Apache-2.0
//
// service/isolation_service.h — IsolationService: validate, ask, pass on what comes.
// Runs on the streams loop, all else on the control loop.
#pragma once

#include "bridge/opensandbox/isolation_client.h"
#include "bridge/service/call.h"
#include "bridge/service/call_host.h"
#include "sandbox/bridge/v1/isolation.grpc.pb.h"

namespace bridge {

class IsolationServiceImpl final : public sandbox::bridge::v1::IsolationService::CallbackService {
 public:
  // One client a lane. All of it outlives the gRPC server.
  struct Deps {
    CallHost& host;
    EventLoop& control;
    IsolationClient& control_sessions;
    EventLoop& streams;
    IsolationClient& stream_sessions;
  };
  explicit IsolationServiceImpl(Deps deps) : deps_(deps) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reply = grpc::ServerUnaryReactor;

  // clang-format off
  Reply* GetIsolation(Context*, const sandbox::bridge::v1::GetIsolationRequest*, sandbox::bridge::v1::Isolation*) override;
  Reply* OpenIsolatedSession(Context*, const sandbox::bridge::v1::OpenIsolatedSessionRequest*, sandbox::bridge::v1::IsolatedSession*) override;
  Reply* ListIsolatedSessions(Context*, const sandbox::bridge::v1::ListIsolatedSessionsRequest*, sandbox::bridge::v1::ListIsolatedSessionsResponse*) override;
  grpc::ServerWriteReactor<sandbox::bridge::v1::ExecEvent>* RunInIsolatedSession(Context*, const sandbox::bridge::v1::RunInIsolatedSessionRequest*) override;
  Reply* CloseIsolatedSession(Context*, const sandbox::bridge::v1::CloseIsolatedSessionRequest*, sandbox::bridge::v1::CloseIsolatedSessionResponse*) override;
  // clang-format on

  const Deps deps_;
};

}  // namespace bridge
