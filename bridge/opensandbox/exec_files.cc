// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_files.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/exec_cleanup.h"
#include "bridge/opensandbox/exec_outcome.h"
#include "bridge/opensandbox/exec_status.h"
#include "bridge/opensandbox/file_codec.h"

namespace bridge {
namespace {

constexpr absl::Duration kShortestInterval = absl::Milliseconds(10);
constexpr absl::Duration kLongestInterval = absl::Seconds(1);
constexpr double kSlowDown = 1.6;
constexpr absl::Duration kStatusInterval = absl::Milliseconds(200);
constexpr absl::Duration kLookLimit = absl::Seconds(5);
// A daemon that cannot be reached for so long has lost the command.
constexpr absl::Duration kUnreachable = absl::Seconds(10);
// Between the daemon's clock that kills and ours.
constexpr absl::Duration kIdle = absl::Seconds(30);
// What RedirectScript exits with where it cannot make its folder.
constexpr int kNoFolder = 125;
constexpr int64_t kUnknownRest = 64 * 1024;

// How large the whole file is of which an answer has a part, all, or nothing; -1: it does not say.
int64_t WholeSize(const HttpHead& head) {
  std::string_view text;
  if (head.status == 200) {
    text = head.headers.Get("Content-Length").value_or("");
  } else {  // "bytes 3-7/8", "bytes */8"
    text = head.headers.Get("Content-Range").value_or("");
    text.remove_prefix(std::min(text.size(), text.rfind('/') + 1));
  }
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size() && size >= 0 ? size : -1;
}

}  // namespace

FileExec::FileExec(SandboxHandle sandbox, std::unique_ptr<RemoteCommand> command, ExecFolder folder,
                   ExecId id, OnDrop on_drop, bool stdin_uploaded)
    : sandbox_(std::move(sandbox)),
      command_(std::move(command)),
      folder_(std::move(folder)),
      exec_id_(std::move(id)),
      on_drop_(on_drop),
      stdin_uploaded_(stdin_uploaded),
      outputs_{{{StreamId::kStdout, folder_.out()}, {StreamId::kStderr, folder_.err()}}},
      started_(sandbox_.loop().Now()),
      interval_(kShortestInterval) {
  id_ = FormatExecId(exec_id_);
  incarnation_ = sandbox_.daemon->incarnation;
}

FileExec::FileExec(SandboxHandle sandbox, ExecFolder folder, ExecId id, OnDrop on_drop,
                   int64_t stdout_offset, int64_t stderr_offset)
    : FileExec(std::move(sandbox), nullptr, std::move(folder), std::move(id), on_drop, false) {
  outputs_[0].begin = outputs_[0].offset = stdout_offset;
  outputs_[1].begin = outputs_[1].offset = stderr_offset;
}

FileExec::~FileExec() {
  for (Output& output : outputs_) output.download.reset();
  const bool over = reported_ && drained_;
  // An exec that still runs is ended by this. Who asks for its outcome later is to hear that,
  // though the folder goes.
  const bool cut = !outcome_ || std::holds_alternative<CancelledEnd>(*outcome_);
  if (over && command_ == nullptr) return;  // attached: others may want the files still
  if (over && on_drop_ == OnDrop::kKill) {
    // Its (empty) folder alone tells later callers that the exit status is not the command's.
    if (std::holds_alternative<SpawnFailed>(*outcome_)) return;
    sandbox_.background.Start("remove the files of an exec",
                              [sandbox = sandbox_.ForBackground(kIdle), folder = folder_, cut,
                               uploaded = stdin_uploaded_]() -> Task<void> {
                                if (cut) co_await NoteCut(sandbox, folder);
                                co_await RemoveExecFolder(sandbox, folder, uploaded);
                              });
    return;
  }
  if (over || refused_ || on_drop_ == OnDrop::kDetach) return;
  sandbox_.background.Start(
      "kill a command",
      [sandbox = sandbox_.ForBackground(kIdle), folder = folder_, id = exec_id_, cut,
       uploaded = stdin_uploaded_,
       command = std::shared_ptr<RemoteCommand>(std::move(command_))]() mutable -> Task<void> {
        if (cut) co_await NoteCut(sandbox, folder);
        if (command != nullptr) {
          co_await KillRemoteCommand(sandbox, std::move(command), folder, uploaded);
        } else {
          (void)co_await InterruptCommand(sandbox.client, sandbox.context, sandbox.daemon,
                                          id.command_id);
          (void)co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                                   SignalScript(folder, 9), nullptr);
          co_await RemoveExecFolder(sandbox, folder, uploaded);
        }
      });
}

void FileExec::Skip(StreamId stream) {
  Output& output = outputs_[stream == StreamId::kStdout ? 0 : 1];
  output.skip = true;
  output.download.reset();
}

Task<absl::Status> FileExec::CheckPlace() {
  if (outputs_[0].begin == 0 && outputs_[1].begin == 0) co_return absl::OkStatus();
  absl::Status status = co_await LookAtSizes();
  refused_ = !status.ok();
  co_return status;
}

bool FileExec::Downloading() const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [](const Output& output) { return output.download != nullptr; });
}

Task<absl::Status> FileExec::Next(ExecBatch* batch, absl::Duration patience) {
  *batch = {};
  const absl::Duration until = sandbox_.loop().Now() + patience;
  bool more = true;
  while (more) {
    absl::Status status = co_await Fill(batch, until);
    const bool cancelled = co_await Cancelled();
    if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
    if (!status.ok()) status = co_await Forgive(std::move(status));
    if (!status.ok()) co_return status;
    const bool something = !batch->outputs.empty() || batch->exited || batch->drained;
    more = !something && sandbox_.loop().Now() < until;
  }
  co_return absl::OkStatus();
}

// As far as was seen: what a caller says to have had is not.
int64_t FileExec::Printed(const Output& output) const {
  return looked_ ? std::max(output.seen, output.offset) : output.offset - output.begin;
}

// One step towards the next thing to report.
Task<absl::Status> FileExec::Fill(ExecBatch* batch, absl::Duration until) {
  if (Downloading()) {
    for (Output& output : outputs_) {
      while (output.download != nullptr && batch->bytes() < kExecBatchBytes) {
        CO_RETURN_IF_ERROR(co_await ReadDownload(output, batch));
      }
    }
    co_return absl::OkStatus();
  }
  if (outcome_ && !reported_) co_return co_await Ended(batch);
  if (outcome_ && !final_) co_return co_await FetchTheRest();
  if (outcome_) {
    for (const Output& output : outputs_) {
      if (!output.skip && output.offset < output.seen) lossy_ = true;
    }
    batch->drained = drained_ = true;
    batch->stdout_bytes = Printed(outputs_[0]);
    batch->stderr_bytes = Printed(outputs_[1]);
    batch->lossy = lossy_;
    co_return absl::OkStatus();
  }
  CO_RETURN_IF_ERROR(co_await Wait(until));
  if (outcome_) co_return absl::OkStatus();
  CO_RETURN_IF_ERROR(co_await LookAtSizes());
  bool grew = false;
  for (Output& output : outputs_) {
    if (output.skip || output.offset >= output.size) continue;
    grew = true;
    StartDownload(output);
  }
  interval_ = grew ? kShortestInterval : std::min(interval_ * kSlowDown, kLongestInterval);
  co_return absl::OkStatus();
}

// Both files to their ends, whatever their sizes are: asking for those first would be an exchange
// more, and the answers tell them. Of an output that nobody wants only the size is asked for.
Task<absl::Status> FileExec::FetchTheRest() {
  if (outputs_[0].skip || outputs_[1].skip) CO_RETURN_IF_ERROR(co_await LookAtSizes());
  final_ = true;
  for (Output& output : outputs_) {
    if (!output.skip) StartDownload(output);
  }
  co_return absl::OkStatus();
}

// Waits for the command's end, at most for the present interval.
Task<absl::Status> FileExec::Wait(absl::Duration until) {
  const absl::Duration wait =
      std::clamp(until - sandbox_.loop().Now(), absl::ZeroDuration(), interval_);
  if (command_ != nullptr && !command_->broken()) {
    (void)co_await RunWithin(sandbox_.loop(), wait, [this] { return WatchStream(); });
    if (command_->ended()) {
      outcome_ = command_->ended();
      ran_for_ = command_->ran_for();
    }
    co_return absl::OkStatus();
  }
  const bool slept = co_await sandbox_.loop().Sleep(wait);
  if (!slept || sandbox_.loop().Now() < next_status_) co_return absl::OkStatus();
  next_status_ = sandbox_.loop().Now() + std::max(kStatusInterval, interval_);
  co_return co_await LookAtStatus();
}

Task<void> FileExec::WatchStream() {
  std::vector<CommandEvent> ignored;  // what the shell itself prints: nothing, normally
  bool more = true;
  while (more) more = co_await command_->ReadEvents(&ignored);
}

Task<absl::Status> FileExec::LookAtStatus() {
  absl::StatusOr<CommandStatus> status = co_await FetchCommandStatus(
      sandbox_.client, sandbox_.context, sandbox_.daemon, exec_id_.command_id);
  if (!status.ok()) {
    if (ReasonOf(status.status()) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) {
      outcome_ = Lost{"the sandbox's daemon no longer knows the command", true};
      lossy_ = true;
      co_return absl::OkStatus();
    }
    co_return status.status();
  }
  failing_since_ = absl::InfiniteDuration();
  if (status->running) co_return absl::OkStatus();
  outcome_ = OutcomeOfStatus(*status);
  ran_for_ = RanFor(*status);
  if (!ran_for_ && command_ != nullptr) ran_for_ = command_->ran_for();
  co_return absl::OkStatus();
}

Task<absl::Status> FileExec::LookAtSizes() {
  HttpRequest request =
      sandbox_.client.Request(sandbox_.context, *sandbox_.daemon, "GET",
                              "/files/info?path=" + QueryEscape(outputs_[0].path) +
                                  "&path=" + QueryEscape(outputs_[1].path),
                              kLookLimit);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox_.client.Fetch(sandbox_.context, sandbox_.daemon,
                                                     std::move(request), 64 * 1024));
  failing_since_ = absl::InfiniteDuration();
  if (response.status == 404) {
    TakeAbsence();
    co_return absl::OkStatus();
  }
  if (response.status != 200) co_return DaemonError(response, "look at an exec's output");
  for (Output& output : outputs_) {
    CO_ASSIGN_OR_RETURN(int64_t size, ParseFileSize(response.body, output.path));
    CO_RETURN_IF_ERROR(TakeSize(output, size));
  }
  co_return absl::OkStatus();
}

absl::Status FileExec::TakeSize(Output& output, int64_t size) {
  looked_ = true;
  output.size = size;
  output.seen = std::max(output.seen, size);
  if (size >= output.offset && size == output.seen) return absl::OkStatus();
  if (size < output.offset && command_ == nullptr && output.offset == output.begin) {
    refused_ = true;
    return InvalidField(output.stream == StreamId::kStdout ? "stdout_offset" : "stderr_offset",
                        "lies ahead of the output");
  }
  lossy_ = true;  // the command cut its own output
  return absl::OkStatus();
}

// Not there yet: the shell is still at its first lines. Not there at the end: the command, or
// somebody else, removed it with what was not fetched; of one that is attached to, the bridge. Only
// a shell that was ended at once has never made it.
void FileExec::TakeAbsence() {
  const bool made =
      looked_ || command_ == nullptr || (outcome_ && std::holds_alternative<ExitCode>(*outcome_));
  if (outcome_ && made) lossy_ = true;
}

Task<absl::Status> FileExec::Ended(ExecBatch* batch) {
  CO_ASSIGN_OR_RETURN(batch->exited, co_await FinalOutcome());
  outcome_ = batch->exited;
  if (!std::holds_alternative<SpawnFailed>(*outcome_)) batch->ran_for = ran_for_;
  reported_ = true;
  co_return absl::OkStatus();
}

// What the daemon's word on the end means, given how the command was started.
Task<absl::StatusOr<Outcome>> FileExec::FinalOutcome() {
  const Outcome said = *outcome_;
  if (said == Outcome(ExitCode{kNoFolder}) && !looked_) {
    absl::StatusOr<std::string> out = co_await sandbox_.client.ReadSmallFile(
        sandbox_.context, sandbox_.daemon, folder_.pid(), 64);
    if (out.ok() || ReasonOf(out.status()) != ErrorReason::ERROR_REASON_PATH_NOT_FOUND) {
      co_return said;
    }
    sandbox_.daemon->probed = nullptr;  // its scratch directory is no longer one
    co_return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                        "exact output needs a private folder in the sandbox, and none can be made",
                        {.metadata = {{"feature", "exec.bytes"}}});
  }
  co_return co_await ResolveOutcome(sandbox_, folder_, said, exec_id_.timeout,
                                    ran_for_.value_or(Elapsed()));
}

void FileExec::StartDownload(Output& output) {
  HttpRequest request = sandbox_.client.Request(sandbox_.context, *sandbox_.daemon, "GET",
                                                "/files/download?path=" + QueryEscape(output.path),
                                                absl::InfiniteDuration());
  if (output.offset > 0) {
    request.headers.Set("Range", "bytes=" + std::to_string(output.offset) + "-");
  }
  request.idle_timeout = kIdle;
  request.chunk_bytes = kExecBatchBytes;
  request.max_chunks = 2;
  const int64_t rest = output.size > output.offset ? output.size - output.offset : kUnknownRest;
  request.receive_buffer = std::clamp<size_t>(static_cast<size_t>(rest), 16 * 1024, 256 * 1024);
  output.head_seen = false;
  output.download = std::make_unique<Transfer>(sandbox_.client.http(), std::move(request));
}

Task<absl::Status> FileExec::ReadDownload(Output& output, ExecBatch* batch) {
  if (!output.head_seen) {
    absl::StatusOr<HttpHead> head = co_await output.download->Head();
    absl::Status status = head.ok() ? TakeHead(output, *head) : head.status();
    if (!status.ok()) {
      output.download.reset();
      final_ = false;  // what is missing is asked for again, from `offset` on
      co_return status;
    }
    output.head_seen = true;
    if (head->status == 416 || head->status == 404) {
      output.download.reset();
      co_return absl::OkStatus();
    }
  }
  std::string chunk;
  const bool more = co_await output.download->Read(&chunk);
  if (more) {
    const auto size = static_cast<int64_t>(chunk.size());
    batch->outputs.push_back({output.stream, std::move(chunk), output.offset});
    output.offset += size;
    output.size = std::max(output.size, output.offset);
    output.seen = std::max(output.seen, output.offset);
    co_return absl::OkStatus();
  }
  const absl::Status result = output.download->result();
  output.download.reset();
  if (!result.ok()) final_ = false;
  co_return result;
}

absl::Status FileExec::TakeHead(Output& output, const HttpHead& head) {
  if (head.status == 404) {
    TakeAbsence();
    return absl::OkStatus();
  }
  if (head.status == 206 || head.status == 416 || (head.status == 200 && output.offset == 0)) {
    const int64_t size = WholeSize(head);
    if (size >= 0) return TakeSize(output, size);
    looked_ = true;
    return absl::OkStatus();
  }
  if (head.status == 200) {
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                     "the sandbox's daemon ignored a byte range");
  }
  return DaemonError(AnswerOf(head), "hand out an exec's output");
}

// A failed look is no loss yet: the files stay. Only a daemon that stays away has lost the command.
Task<absl::Status> FileExec::Forgive(absl::Status failure) {
  const ErrorReason reason = ReasonOf(failure);
  const bool gone = reason == ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND;
  const bool paused = SaysPaused(failure);
  const bool transient = reason == ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE ||
                         reason == ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT ||
                         reason == ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE ||
                         reason == ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL;
  const absl::Duration now = sandbox_.loop().Now();
  failing_since_ = std::min(failing_since_, now);
  if (paused) failing_since_ = absl::InfiniteDuration();
  if ((transient && now - failing_since_ < kUnreachable) || paused) {
    (void)co_await sandbox_.loop().Sleep(kStatusInterval);
    co_return absl::OkStatus();
  }
  if (!gone && !transient && reason != ErrorReason::ERROR_REASON_SANDBOX_NOT_RUNNING) {
    co_return failure;
  }
  // Everything that could be learnt is learnt: an unknown end, and output that may be incomplete.
  if (!outcome_) outcome_ = Lost{std::string(failure.message()), !IsSandboxOver(failure)};
  lossy_ = true;
  final_ = true;
  for (Output& output : outputs_) output.download.reset();
  co_return absl::OkStatus();
}

}  // namespace bridge
