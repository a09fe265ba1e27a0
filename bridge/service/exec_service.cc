// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/exec_service.h"

#include <memory>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/service/exec_convert.h"
#include "bridge/service/exec_pump.h"
#include "bridge/service/target.h"
#include "bridge/service/time_convert.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr Method kExecute = StreamingMethod("sandbox.bridge.v1.ExecService/Execute");
// How long a command runs is the caller's business: no deadline but his.
constexpr Method kRun =
    UnaryMethod("sandbox.bridge.v1.ExecService/Run").WithDefaultDeadline(absl::InfiniteDuration());
constexpr Method kAttach = StreamingMethod("sandbox.bridge.v1.ExecService/AttachExec");
constexpr Method kSignal = UnaryMethod("sandbox.bridge.v1.ExecService/SignalExec");
constexpr Method kGet = UnaryMethod("sandbox.bridge.v1.ExecService/GetExec");

}  // namespace

// ---- Execute

grpc::ServerWriteReactor<v1::ExecEvent>* ExecServiceImpl::Execute(
    grpc::CallbackServerContext* context, const v1::ExecuteRequest* request) {
  return Start<Writer<ExecEvent>>(
      deps_.host, deps_.streams, context, kExecute.Charging(*request),
      [this, request](auto& call) { return HandleExecute(call, *request); });
}

Task<absl::Status> ExecServiceImpl::HandleExecute(Writer<ExecEvent>& call,
                                                  Ref<v1::ExecuteRequest> request) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(ExecSpec spec, ExecSpecFromProto(request.spec()));
  CO_ASSIGN_OR_RETURN(absl::Duration keepalive, KeepaliveFromProto(request.has_keepalive_interval(),
                                                                   request.keepalive_interval()));
  if (request.detached()) spec.detach_on_disconnect = true;
  const int64_t max_output = request.spec().has_max_output_bytes()
                                 ? request.spec().max_output_bytes()
                                 : OutputLimit::kNone;
  call.set_waiting_for("the command to start");
  absl::StatusOr<std::unique_ptr<Exec>> exec = co_await deps_.stream_execs.Start(
      call.context(), std::move(target), std::move(spec), keepalive);
  if (!exec.ok()) co_return About(request, exec.status());
  ExecPump pump(call, **exec, max_output, keepalive);
  absl::Status status = absl::OkStatus();
  if (request.detached() && !(*exec)->id().empty()) {
    status = co_await pump.SendStarted();
  } else {
    status = co_await pump.Run();
  }
  co_return About(request, status);
}

// ---- Run

grpc::ServerUnaryReactor* ExecServiceImpl::Run(grpc::CallbackServerContext* context,
                                               const v1::RunRequest* request,
                                               v1::RunResponse* response) {
  return Start<Unary>(
      deps_.host, deps_.streams, context, kRun.Charging(*request),
      [this, request, response](auto& call) { return HandleRun(call, *request, *response); });
}

Task<absl::Status> ExecServiceImpl::HandleRun(Unary& call, Ref<v1::RunRequest> request,
                                              v1::RunResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(ExecSpec spec, ExecSpecFromProto(request.spec()));
  if (spec.detach_on_disconnect) {
    co_return InvalidField("spec.on_disconnect", "must not be DETACH here; use Execute");
  }
  int64_t max_output = kMaxRunOutputBytes;
  if (request.spec().has_max_output_bytes()) max_output = request.spec().max_output_bytes();
  if (max_output > kMaxRunOutputBytes) {
    co_return InvalidField("spec.max_output_bytes", "must be at most 1 MiB here; use Execute");
  }
  call.set_waiting_for("the command to start");
  absl::StatusOr<std::unique_ptr<Exec>> exec = co_await deps_.stream_execs.Start(
      call.context(), std::move(target), std::move(spec), kDefaultKeepalive);
  if (!exec.ok()) co_return About(request, exec.status());
  call.set_waiting_for("the command to end");
  OutputLimit limit(max_output);
  ExecBatch batch;
  while (!batch.drained) {
    const absl::Status status = co_await (*exec)->Next(&batch, kDefaultKeepalive);
    if (!status.ok()) co_return About(request, status);
    for (const ExecOutput& output : batch.outputs) {
      const auto take =
          static_cast<size_t>(limit.Take(output.stream, static_cast<int64_t>(output.data.size())));
      const bool out = output.stream == StreamId::kStdout;
      (out ? response.mutable_stdout() : response.mutable_stderr())->append(output.data, 0, take);
      if (limit.full(output.stream)) (*exec)->Skip(output.stream);
    }
    if (batch.exited) {
      OutcomeToProto(*batch.exited, response.mutable_outcome());
      if (batch.ran_for) DurationToProto(*batch.ran_for, response.mutable_ran_for());
    }
  }
  response.set_exec_id((*exec)->id());
  response.set_stdout_bytes_produced(batch.stdout_bytes);
  response.set_stderr_bytes_produced(batch.stderr_bytes);
  response.set_stdout_truncated(limit.truncated(StreamId::kStdout, batch.stdout_bytes));
  response.set_stderr_truncated(limit.truncated(StreamId::kStderr, batch.stderr_bytes));
  response.set_fidelity(FidelityToProto((*exec)->fidelity()));
  response.set_lossy(batch.lossy);
  if (batch.still_open) response.set_still_open(*batch.still_open);
  co_return absl::OkStatus();
}

// ---- AttachExec

grpc::ServerWriteReactor<v1::ExecEvent>* ExecServiceImpl::AttachExec(
    grpc::CallbackServerContext* context, const v1::AttachExecRequest* request) {
  return Start<Writer<ExecEvent>>(
      deps_.host, deps_.streams, context, kAttach,
      [this, request](auto& call) { return HandleAttach(call, *request); });
}

Task<absl::Status> ExecServiceImpl::HandleAttach(Writer<ExecEvent>& call,
                                                 Ref<v1::AttachExecRequest> request) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  if (request.exec_id().empty()) co_return InvalidField("exec_id", "must not be empty");
  if (request.stdout_offset() < 0) {
    co_return InvalidField("stdout_offset", "must not be negative");
  }
  if (request.stderr_offset() < 0) {
    co_return InvalidField("stderr_offset", "must not be negative");
  }
  CO_ASSIGN_OR_RETURN(absl::Duration keepalive, KeepaliveFromProto(request.has_keepalive_interval(),
                                                                   request.keepalive_interval()));
  CO_RETURN_IF_ERROR(CheckEnum("on_disconnect", request.on_disconnect(),
                               v1::ExecSpec::OnDisconnect_IsValid(request.on_disconnect())));
  call.set_waiting_for("the exec to be found");
  absl::StatusOr<std::unique_ptr<Exec>> exec = co_await deps_.stream_execs.Attach(
      call.context(), std::move(target), request.exec_id(), request.stdout_offset(),
      request.stderr_offset(), request.on_disconnect() == v1::ExecSpec::ON_DISCONNECT_KILL,
      keepalive);
  if (!exec.ok()) co_return About(request, exec.status());
  ExecPump pump(call, **exec, OutputLimit::kNone, keepalive);
  const absl::Status status = co_await pump.Run();
  co_return About(request, status);
}

// ---- SignalExec, GetExec

grpc::ServerUnaryReactor* ExecServiceImpl::SignalExec(grpc::CallbackServerContext* context,
                                                      const v1::SignalExecRequest* request,
                                                      v1::SignalExecResponse* response) {
  return Start<Unary>(
      deps_.host, deps_.control, context, kSignal,
      [this, request, response](auto& call) { return HandleSignal(call, *request, *response); });
}

Task<absl::Status> ExecServiceImpl::HandleSignal(Unary& call, Ref<v1::SignalExecRequest> request,
                                                 v1::SignalExecResponse& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  if (request.exec_id().empty()) co_return InvalidField("exec_id", "must not be empty");
  CO_ASSIGN_OR_RETURN(int signal, CheckSignal("signal", request.signal()));
  call.set_waiting_for("the signal to be delivered");
  absl::StatusOr<ExecSignalResult> result = co_await deps_.control_execs.Signal(
      call.context(), std::move(target), request.exec_id(), signal);
  if (!result.ok()) co_return About(request, result.status());
  response.set_delivery_confirmed(result->delivery_confirmed);
  response.set_ended(result->ended);
  co_return absl::OkStatus();
}

grpc::ServerUnaryReactor* ExecServiceImpl::GetExec(grpc::CallbackServerContext* context,
                                                   const v1::GetExecRequest* request,
                                                   v1::ExecInfo* response) {
  return Start<Unary>(
      deps_.host, deps_.control, context, kGet,
      [this, request, response](auto& call) { return HandleGet(call, *request, *response); });
}

Task<absl::Status> ExecServiceImpl::HandleGet(Unary& call, Ref<v1::GetExecRequest> request,
                                              v1::ExecInfo& response) {
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(request));
  if (request.exec_id().empty()) co_return InvalidField("exec_id", "must not be empty");
  call.set_waiting_for("the exec's record");
  absl::StatusOr<ExecInfo> info =
      co_await deps_.control_execs.Get(call.context(), std::move(target), request.exec_id());
  if (!info.ok()) co_return About(request, info.status());
  response.set_exec_id(request.exec_id());
  ExecInfoToProto(*info, &response);
  co_return absl::OkStatus();
}

}  // namespace bridge
