// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/process_attach.h"

#include <deque>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/service/exec_convert.h"
#include "bridge/service/process_convert.h"
#include "bridge/service/target.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr size_t kMaxInput = 256 * 1024;
constexpr size_t kPiece = 256 * 1024;

// Whom the input pump needs for a signal.
struct Holder {
  ProcessClient& processes;
  AttachCall& call;
  ProcessAttachment& attachment;
  SandboxTarget target;
  std::string process_id;
};

Task<absl::Status> TakeRequest(Holder& holder, const v1::AttachProcessRequest& request) {
  switch (request.message_case()) {
    case v1::AttachProcessRequest::kStdin:
      if (request.stdin().offset() < 0) {
        co_return InvalidField("stdin.offset", "must not be negative");
      }
      if (request.stdin().data().size() > kMaxInput) {
        co_return InvalidField("stdin.data", "must be at most 256 KiB a message");
      }
      co_return co_await holder.attachment.SendInput(request.stdin().offset(),
                                                     request.stdin().data());
    case v1::AttachProcessRequest::kStdinEof:
      co_return co_await holder.attachment.SendEof();
    case v1::AttachProcessRequest::kResize: {
      CO_ASSIGN_OR_RETURN(TerminalSize size, TerminalSizeFromProto("resize", request.resize()));
      co_return co_await holder.attachment.Resize(size);
    }
    case v1::AttachProcessRequest::kSignal: {
      CO_ASSIGN_OR_RETURN(int signal, CheckSignal("signal", request.signal()));
      const ProcessSignal wanted{signal, true};
      const absl::Status sent = co_await holder.processes.Signal(
          holder.call.context(), holder.target, holder.process_id, wanted);
      // It ended meanwhile: the client learns that from the events.
      if (ReasonOf(sent) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) co_return absl::OkStatus();
      co_return sent;
    }
    case v1::AttachProcessRequest::kAttach:
      co_return InvalidField("attach", "must be the first message only");
    case v1::AttachProcessRequest::MESSAGE_NOT_SET:
      break;
  }
  co_return InvalidField("message", "is not known to this bridge");
}

// From the client to the process, until the client is done or a message is wrong.
Task<absl::Status> PumpInput(Holder& holder) {
  while (true) {
    const v1::AttachProcessRequest* request = co_await holder.call.Read();
    if (request == nullptr) co_return absl::OkStatus();
    CO_RETURN_IF_ERROR(co_await TakeRequest(holder, *request));
  }
}

Task<bool> SendEvent(AttachCall& call, ProcessEvent event, v1::ProcessEvent& message) {
  auto* output = std::get_if<ProcessOutput>(&event);
  // A replay is one frame of up to a MiB.
  bool alive = true;
  while (alive && output != nullptr && output->data.size() > kPiece) {
    message.Clear();
    ProcessEventToProto(
        ProcessOutput{output->offset, output->stream, output->data.substr(0, kPiece)}, &message);
    output->data.erase(0, kPiece);
    output->offset += static_cast<int64_t>(kPiece);
    alive = co_await call.Write(message);
  }
  if (!alive) co_return false;
  message.Clear();
  ProcessEventToProto(std::move(event), &message);
  co_return co_await call.Write(message);
}

// From the process to the client, to its end.
Task<absl::Status> PumpOutput(Holder& holder, absl::Duration keepalive) {
  v1::ProcessEvent message;
  bool last = false;
  while (!last) {
    std::optional<absl::StatusOr<ProcessEvent>> event;
    const bool came = co_await RunWithin(
        holder.call.loop(), keepalive,
        [&holder, &event]() -> Task<void> { event.emplace(co_await holder.attachment.Next()); });
    const bool cancelled = co_await Cancelled();
    if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
    if (!came && (!event || !event->ok())) {
      message.Clear();
      message.mutable_keepalive();
      const bool alive = co_await holder.call.Write(message);
      if (!alive) co_return holder.call.Interrupted();
      continue;
    }
    if (!event->ok()) co_return event->status();
    last = std::holds_alternative<ProcessDrained>(**event) ||
           std::holds_alternative<Displaced>(**event);
    const bool alive = co_await SendEvent(holder.call, *std::move(*event), message);
    if (!alive) co_return holder.call.Interrupted();
  }
  co_return absl::OkStatus();
}

}  // namespace

Task<absl::Status> HandleAttachProcess(ProcessClient& processes, AttachCall& call) {
  call.set_waiting_for("the first message from the client");
  const v1::AttachProcessRequest* first = co_await call.Read();
  if (first == nullptr && call.interruption() != Interruption::kNone) co_return call.Interrupted();
  if (first == nullptr || !first->has_attach()) {
    co_return InvalidField("attach", "must be the first message");
  }
  const v1::AttachProcessRequest::Attach attach = first->attach();
  CO_ASSIGN_OR_RETURN(SandboxTarget target, TargetOf(attach, "attach."));
  if (attach.process_id().empty()) co_return InvalidField("attach.process_id", "must not be empty");
  if (attach.has_offset() && attach.offset() < 0) {
    co_return InvalidField("attach.offset", "must not be negative");
  }
  CO_ASSIGN_OR_RETURN(absl::Duration keepalive,
                      KeepaliveFromProto(attach.has_keepalive_interval(),
                                         attach.keepalive_interval(), "attach.keepalive_interval"));
  AttachOptions options{.takeover = attach.takeover(),
                        .restart_if_exited = attach.restart_if_exited()};
  if (attach.has_offset()) options.offset = attach.offset();
  call.set_waiting_for("the process to be attached");
  absl::StatusOr<std::unique_ptr<ProcessAttachment>> attachment =
      co_await processes.Attach(call.context(), target, attach.process_id(), options);
  if (!attachment.ok()) co_return About(attach, attachment.status());
  call.set_waiting_for("output of the process");
  Holder holder{processes, call, **attachment, std::move(target), attach.process_id()};
  absl::Status input = absl::OkStatus();
  absl::Status output = absl::OkStatus();
  bool output_ended = false;
  // A client that has closed its half still wants the output: only the output's end, or a wrong
  // message, ends the call.
  auto up = [&]() -> Task<void> {
    input = co_await PumpInput(holder);
    Waiter forever;
    if (input.ok()) (void)co_await forever.Wait();
  };
  auto down = [&]() -> Task<void> {
    output = co_await PumpOutput(holder, keepalive);
    output_ended = true;
  };
  co_await RunBoth(up, down);
  if (call.interruption() != Interruption::kNone) co_return About(attach, call.Interrupted());
  if (!input.ok() && ReasonOf(input) != ErrorReason::ERROR_REASON_CANCELLED) {
    co_return About(attach, input);
  }
  co_return About(attach, output);
}

}  // namespace bridge
