// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/exec_pump.h"

#include <algorithm>
#include <string_view>

#include "bridge/base/status_macros.h"
#include "bridge/service/exec_convert.h"
#include "bridge/service/time_convert.h"

namespace bridge {
namespace {

// Of output in one message; far from 1 MiB, whatever the framing adds.
constexpr int64_t kMessageBytes = 512 * 1024;
constexpr int64_t kPieceBytes = 256 * 1024;

}  // namespace

int64_t OutputLimit::Take(StreamId stream, int64_t size) {
  int64_t& taken = taken_[Index(stream)];
  const int64_t allowed = std::min(size, limit_ - taken);
  taken += allowed;
  if (allowed < size) truncated_[Index(stream)] = true;
  return allowed;
}

Task<absl::Status> ExecPump::SendStarted() {
  auto* started = events_[current_].mutable_started();
  started->set_exec_id(exec_.id());
  started->set_fidelity(FidelityToProto(exec_.fidelity()));
  started->set_incarnation(exec_.incarnation());
  started->set_pid(exec_.pid());
  const bool alive = co_await Send();
  co_return alive ? absl::OkStatus() : call_.Interrupted();
}

Task<absl::Status> ExecPump::Run() {
  CO_RETURN_IF_ERROR(co_await SendStarted());
  ExecBatch batch;
  bool alive = true;
  while (alive && !batch.drained) {
    call_.set_waiting_for("output of the command");
    CO_RETURN_IF_ERROR(
        co_await exec_.Next(&batch, std::max(keepalive_ - SinceLastSend(), absl::ZeroDuration())));
    call_.set_waiting_for("the client to read");
    alive = co_await SendOutputs(batch);
    if (alive && (batch.exited || batch.drained)) alive = co_await SendEnd(batch);
    if (alive && !batch.drained && KeepaliveIsDue()) {
      events_[current_].mutable_keepalive();
      alive = co_await Send();
    }
  }
  if (alive) alive = co_await call_.Written();
  co_return alive ? absl::OkStatus() : call_.Interrupted();
}

// The message is handed over as soon as the one before has left; the next one is filled meanwhile.
Task<bool> ExecPump::Send() {
  const bool alive = co_await call_.Written();
  if (!alive) co_return false;
  last_send_ = call_.loop().Now();
  call_.BeginWrite(events_[current_]);
  current_ = 1 - current_;
  // Nobody looks at this one any more: its memory is used again.
  events_[current_].Clear();
  co_return true;
}

Task<bool> ExecPump::SendOutputs(const ExecBatch& batch) {
  bool alive = true;
  int64_t filled = 0;
  for (const ExecOutput& output : batch.outputs) {
    std::string_view rest = output.data;
    rest = rest.substr(
        0, static_cast<size_t>(limit_.Take(output.stream, static_cast<int64_t>(rest.size()))));
    if (limit_.full(output.stream)) exec_.Skip(output.stream);
    int64_t offset = output.offset;
    while (alive && !rest.empty()) {
      const auto size = std::min<int64_t>(static_cast<int64_t>(rest.size()), kPieceBytes);
      if (filled + size > kMessageBytes) {
        alive = co_await Send();
        filled = 0;
        if (!alive) break;
      }
      auto* piece = events_[current_].mutable_output_batch()->add_outputs();
      piece->set_stream(StreamToProto(output.stream));
      piece->set_offset(offset);
      piece->set_data(rest.data(), static_cast<size_t>(size));
      rest.remove_prefix(static_cast<size_t>(size));
      offset += size;
      filled += size;
    }
  }
  if (alive && filled > 0) alive = co_await Send();
  co_return alive;
}

Task<bool> ExecPump::SendEnd(const ExecBatch& batch) {
  bool alive = true;
  if (batch.exited) {
    auto* exited = events_[current_].mutable_exited();
    OutcomeToProto(*batch.exited, exited->mutable_outcome());
    if (batch.ran_for) DurationToProto(*batch.ran_for, exited->mutable_ran_for());
    alive = co_await Send();
  }
  if (!alive || !batch.drained) co_return alive;
  auto* drained = events_[current_].mutable_drained();
  drained->set_stdout_bytes(batch.stdout_bytes);
  drained->set_stderr_bytes(batch.stderr_bytes);
  drained->set_stdout_truncated(limit_.truncated(StreamId::kStdout, batch.stdout_bytes));
  drained->set_stderr_truncated(limit_.truncated(StreamId::kStderr, batch.stderr_bytes));
  drained->set_lossy(batch.lossy);
  if (batch.still_open) drained->set_still_open(*batch.still_open);
  co_return co_await Send();
}

}  // namespace bridge
