// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/isolation_service.h"

#include <memory>
#include <utility>

#include "bridge/base/status_macros.h"
#include "bridge/service/exec_convert.h"
#include "bridge/service/exec_pump.h"
#include "bridge/service/isolation_convert.h"
#include "bridge/service/target.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr Method kGet = UnaryMethod("sandbox.bridge.v1.IsolationService/GetIsolation");
constexpr Method kOpen = UnaryMethod("sandbox.bridge.v1.IsolationService/OpenIsolatedSession");
constexpr Method kList = UnaryMethod("sandbox.bridge.v1.IsolationService/ListIsolatedSessions");
constexpr Method kRun = StreamingMethod("sandbox.bridge.v1.IsolationService/RunInIsolatedSession");
constexpr Method kClose = UnaryMethod("sandbox.bridge.v1.IsolationService/CloseIsolatedSession");

Task<absl::Status> HandleGet(IsolationClient& sessions, Unary& call,
                             const v1::GetIsolationRequest& request, v1::Isolation& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  call.set_waiting_for("what the sandbox's daemon can isolate");
  absl::StatusOr<IsolationInfo> info = co_await sessions.Get(call.context(), std::move(target));
  if (!info.ok()) co_return About(request, info.status());
  IsolationToProto(*info, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleOpen(IsolationClient& sessions, Unary& call,
                              const v1::OpenIsolatedSessionRequest& request,
                              v1::IsolatedSession& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(IsolatedSessionSpec spec, SessionSpecFromProto(request));
  call.set_waiting_for("the session to be opened");
  absl::StatusOr<IsolatedSession> session =
      co_await sessions.Open(call.context(), std::move(target), std::move(spec));
  if (!session.ok()) co_return About(request, session.status());
  SessionToProto(*session, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleList(IsolationClient& sessions, Unary& call,
                              const v1::ListIsolatedSessionsRequest& request,
                              v1::ListIsolatedSessionsResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  if (!request.workspace_source_path().empty()) {
    CO_RETURN_IF_ERROR(CheckPath("workspace_source_path", request.workspace_source_path()));
  }
  call.set_waiting_for("the list of sessions");
  absl::StatusOr<std::vector<IsolatedSession>> list =
      co_await sessions.List(call.context(), std::move(target), request.workspace_source_path());
  if (!list.ok()) co_return About(request, list.status());
  for (const IsolatedSession& session : *list) SessionToProto(session, response.add_sessions());
  co_return absl::OkStatus();
}

Task<absl::Status> HandleClose(IsolationClient& sessions, Unary& call,
                               const v1::CloseIsolatedSessionRequest& request,
                               v1::CloseIsolatedSessionResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(CheckId("session_id", request.session_id()));
  call.set_waiting_for("the session to be closed");
  absl::StatusOr<bool> existed =
      co_await sessions.Close(call.context(), std::move(target), request.session_id());
  if (!existed.ok()) co_return About(request, existed.status());
  response.set_existed(*existed);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleRun(IsolationClient& sessions, Writer<v1::ExecEvent>& call,
                             const v1::RunInIsolatedSessionRequest& request) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(IsolationClient::RunSpec spec, RunSpecFromProto(request));
  CO_ASSIGN_OR_RETURN(absl::Duration keepalive, KeepaliveFromProto(request.has_keepalive_interval(),
                                                                   request.keepalive_interval()));
  call.set_waiting_for("the session's earlier scripts to end");
  absl::StatusOr<std::unique_ptr<Exec>> run = co_await sessions.Run(
      call.context(), std::move(target), request.session_id(), std::move(spec));
  if (!run.ok()) co_return About(request, run.status());
  ExecPump pump(call, **run, OutputLimit::kNone, keepalive);
  const absl::Status status = co_await pump.Run();
  co_return About(request, status);
}

}  // namespace

#define SB_UNARY(name, Request, Response, method, handler)                                   \
  grpc::ServerUnaryReactor* IsolationServiceImpl::name(                                      \
      Context* context, const v1::Request* request, v1::Response* response) {                \
    return Start<Unary>(deps_.host, deps_.control, context, (method).Charging(*request),     \
                        [this, request, response](auto& call) {                              \
                          return handler(deps_.control_sessions, call, *request, *response); \
                        });                                                                  \
  }

SB_UNARY(GetIsolation, GetIsolationRequest, Isolation, kGet, HandleGet)
SB_UNARY(OpenIsolatedSession, OpenIsolatedSessionRequest, IsolatedSession, kOpen, HandleOpen)
SB_UNARY(ListIsolatedSessions, ListIsolatedSessionsRequest, ListIsolatedSessionsResponse, kList,
         HandleList)
SB_UNARY(CloseIsolatedSession, CloseIsolatedSessionRequest, CloseIsolatedSessionResponse, kClose,
         HandleClose)
#undef SB_UNARY

grpc::ServerWriteReactor<v1::ExecEvent>* IsolationServiceImpl::RunInIsolatedSession(
    Context* context, const v1::RunInIsolatedSessionRequest* request) {
  return Start<Writer<v1::ExecEvent>>(
      deps_.host, deps_.streams, context, kRun.Charging(*request),
      [this, request](auto& call) { return HandleRun(deps_.stream_sessions, call, *request); });
}

}  // namespace bridge
