// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_lines.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/opensandbox/exec_cleanup.h"
#include "bridge/opensandbox/exec_status.h"

namespace bridge {
namespace {

constexpr absl::Duration kKillLimit = absl::Seconds(30);
// After a break: how often and how long the status is asked for before the end is called lost.
constexpr int kStatusTries = 4;
constexpr absl::Duration kStatusPause = absl::Milliseconds(500);

}  // namespace

LineExec::LineExec(SandboxHandle sandbox, std::unique_ptr<RemoteCommand> command, ExecId id,
                   bool kill_on_drop)
    : sandbox_(std::move(sandbox)),
      command_(std::move(command)),
      exec_id_(std::move(id)),
      kill_on_drop_(kill_on_drop) {
  id_ = FormatExecId(exec_id_);
  fidelity_ = ExecFidelity::kLines;
  incarnation_ = sandbox_.daemon->incarnation;
}

LineExec::~LineExec() {
  if (over_ || !kill_on_drop_) return;
  sandbox_.background.Start(
      "kill a command",
      [sandbox = sandbox_.ForBackground(kKillLimit),
       command = std::shared_ptr<RemoteCommand>(std::move(command_))]() mutable -> Task<void> {
        co_await KillRemoteCommand(sandbox, std::move(command), std::nullopt, false);
      });
}

Task<absl::Status> LineExec::Next(ExecBatch* batch, absl::Duration patience) {
  *batch = {};
  if (reported_) {
    batch->drained = over_ = true;
    batch->stdout_bytes = produced_[0];
    batch->stderr_bytes = produced_[1];
    batch->lossy = true;
    co_return absl::OkStatus();
  }
  // The daemon's pings end the wait every 3 s; a longer patience is the caller's loop.
  (void)patience;
  const bool more = co_await command_->ReadEvents(&events_);
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
  if (more) {
    TakeEvents(batch);
    co_return absl::OkStatus();
  }
  Outcome outcome = Lost{};
  if (command_->ended()) {
    outcome = *command_->ended();
  } else {
    outcome = co_await OutcomeOfBrokenStream();
  }
  const absl::Duration ran_for = command_->ran_for();
  if (const auto* signalled = std::get_if<Signalled>(&outcome)) {
    outcome = WithTimeout(*signalled, exec_id_.timeout, ran_for);
  }
  const auto* lost = std::get_if<Lost>(&outcome);
  over_ = lost == nullptr || !lost->maybe_running;
  const bool ran = lost == nullptr && !std::holds_alternative<SpawnFailed>(outcome);
  if (ran) batch->ran_for = ran_for;
  batch->exited = std::move(outcome);
  reported_ = true;
  co_return absl::OkStatus();
}

void LineExec::TakeEvents(ExecBatch* batch) {
  for (CommandEvent& event : events_) {
    if (event.text.empty()) continue;  // an empty line is the text "\n"; this is nothing
    const bool out = event.type == CommandEvent::Type::kStdout;
    // A line without its end.
    if (event.text != "\n") event.text += '\n';
    int64_t& produced = produced_[out ? 0 : 1];
    const auto size = static_cast<int64_t>(event.text.size());
    const StreamId stream = out ? StreamId::kStdout : StreamId::kStderr;
    if (!batch->outputs.empty() && batch->outputs.back().stream == stream) {
      batch->outputs.back().data += event.text;
    } else {
      batch->outputs.push_back({stream, std::move(event.text), produced});
    }
    produced += size;
  }
  events_.clear();
}

// The status record outlives the stream; what it cannot tell is lost.
Task<Outcome> LineExec::OutcomeOfBrokenStream() {
  Outcome outcome = Lost{std::string(command_->broken_why().message()), true};
  for (int i = 0; i < kStatusTries; ++i) {
    absl::StatusOr<CommandStatus> status = co_await FetchCommandStatus(
        sandbox_.client, sandbox_.context, sandbox_.daemon, exec_id_.command_id);
    if (status.ok() && !status->running) co_return OutcomeOfStatus(*status);
    if (status.ok()) break;  // it runs on, and nobody will see what it prints
    if (IsSandboxOver(status.status())) {
      co_return Lost{std::string(command_->broken_why().message()), false};
    }
    const bool slept = co_await sandbox_.loop().Sleep(kStatusPause);
    if (!slept) break;
  }
  co_return outcome;
}

}  // namespace bridge
