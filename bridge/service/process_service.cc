// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/process_service.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/service/process_attach.h"
#include "bridge/service/process_convert.h"
#include "bridge/service/target.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr Method kStart = UnaryMethod("sandbox.bridge.v1.ProcessService/StartProcess");
constexpr Method kAttach = StreamingMethod("sandbox.bridge.v1.ProcessService/AttachProcess");
constexpr Method kList = UnaryMethod("sandbox.bridge.v1.ProcessService/ListProcesses");
constexpr Method kSignal = UnaryMethod("sandbox.bridge.v1.ProcessService/SignalProcess");
constexpr Method kGet = UnaryMethod("sandbox.bridge.v1.ProcessService/GetProcess");
constexpr Method kDelete = UnaryMethod("sandbox.bridge.v1.ProcessService/DeleteProcess");

Task<absl::Status> HandleStart(ProcessClient& processes, Unary& call,
                               const v1::StartProcessRequest& request,
                               v1::StartProcessResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(ProcessSpec spec, ProcessSpecFromProto(request.spec()));
  call.set_waiting_for("the process to start");
  absl::StatusOr<ProcessClient::Started> started = co_await processes.Start(
      call.context(), std::move(target), std::move(spec), request.start_on_attach());
  if (!started.ok()) co_return About(request, started.status());
  response.set_process_id(started->process_id);
  response.set_incarnation(started->incarnation);
  response.set_pid(started->pid);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleList(ProcessClient& processes, Unary& call,
                              const v1::ListProcessesRequest& request,
                              v1::ListProcessesResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  call.set_waiting_for("the list of processes");
  absl::StatusOr<std::vector<ProcessInfo>> list =
      co_await processes.List(call.context(), std::move(target), request.all());
  if (!list.ok()) co_return About(request, list.status());
  for (const ProcessInfo& info : *list) ProcessInfoToProto(info, response.add_processes());
  co_return absl::OkStatus();
}

Task<absl::Status> HandleSignal(ProcessClient& processes, Unary& call,
                                const v1::SignalProcessRequest& request,
                                v1::SignalProcessResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(int signal, CheckSignal("signal", request.signal()));
  const ProcessSignal wanted{signal, request.group()};
  call.set_waiting_for("the signal to be delivered");
  absl::Status sent = absl::OkStatus();
  switch (request.target_case()) {
    case v1::SignalProcessRequest::kProcessId:
      sent = co_await processes.Signal(call.context(), std::move(target), request.process_id(),
                                       wanted);
      break;
    case v1::SignalProcessRequest::kPid:
      if (request.pid() <= 1 || request.pid() > INT32_MAX) {
        co_return InvalidField("pid", "must be greater than 1");
      }
      sent = co_await processes.SignalPid(call.context(), std::move(target), request.pid(), wanted);
      break;
    case v1::SignalProcessRequest::TARGET_NOT_SET:
      co_return InvalidField("target", "one of process_id and pid is required");
  }
  response.set_delivery_confirmed(sent.ok());
  co_return About(request, sent);
}

Task<absl::Status> HandleGet(ProcessClient& processes, Unary& call,
                             const v1::GetProcessRequest& request, v1::ProcessInfo& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  call.set_waiting_for("the process's record");
  absl::StatusOr<ProcessInfo> info =
      co_await processes.Get(call.context(), std::move(target), request.process_id());
  if (!info.ok()) co_return About(request, info.status());
  ProcessInfoToProto(*info, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleDelete(ProcessClient& processes, Unary& call,
                                const v1::DeleteProcessRequest& request,
                                v1::DeleteProcessResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  call.set_waiting_for("the process to end");
  absl::StatusOr<bool> existed =
      co_await processes.Delete(call.context(), std::move(target), request.process_id());
  // Idempotent: what was never one of ours is gone as well.
  if (ReasonOf(existed.status()) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) {
    co_return absl::OkStatus();
  }
  if (!existed.ok()) co_return About(request, existed.status());
  response.set_existed(*existed);
  co_return absl::OkStatus();
}

}  // namespace

#define SB_UNARY(name, Request, Response, method, handler)                                         \
  grpc::ServerUnaryReactor* ProcessServiceImpl::name(Context* context, const v1::Request* request, \
                                                     v1::Response* response) {                     \
    return Start<Unary>(deps_.host, deps_.control, context, (method).Charging(*request),           \
                        [this, request, response](auto& call) {                                    \
                          return handler(deps_.control_processes, call, *request, *response);      \
                        });                                                                        \
  }

SB_UNARY(StartProcess, StartProcessRequest, StartProcessResponse, kStart, HandleStart)
SB_UNARY(ListProcesses, ListProcessesRequest, ListProcessesResponse, kList, HandleList)
SB_UNARY(SignalProcess, SignalProcessRequest, SignalProcessResponse, kSignal, HandleSignal)
SB_UNARY(GetProcess, GetProcessRequest, ProcessInfo, kGet, HandleGet)
SB_UNARY(DeleteProcess, DeleteProcessRequest, DeleteProcessResponse, kDelete, HandleDelete)
#undef SB_UNARY

grpc::ServerBidiReactor<v1::AttachProcessRequest, v1::ProcessEvent>*
ProcessServiceImpl::AttachProcess(Context* context) {
  return Start<AttachCall>(deps_.host, deps_.streams, context, kAttach, [this](auto& call) {
    return HandleAttachProcess(deps_.stream_processes, call);
  });
}

}  // namespace bridge
