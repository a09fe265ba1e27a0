// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_own.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/random.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/exec_status.h"

namespace bridge {
namespace {

constexpr std::string_view kFramesType = "application/vnd.sandbox.frames";
constexpr size_t kMaxErrorBody = 64 * 1024;
// A cut stream is resumed for so long before the command counts as lost.
constexpr absl::Duration kResumeFor = absl::Seconds(10);
// A daemon that contradicts itself so often at one place will not do otherwise.
constexpr int kMaxContradictions = 3;
constexpr absl::Duration kResumePause = absl::Milliseconds(200);
constexpr absl::Duration kKillLimit = absl::Seconds(60);
constexpr absl::Duration kSmallLimit = absl::Seconds(10);
constexpr absl::Duration kKillPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestKillPause = absl::Seconds(5);

int Index(StreamId stream) { return stream == StreamId::kStdout ? 0 : 1; }

}  // namespace

OwnExec::OwnExec(SandboxHandle sandbox, const ExecSpec& spec, absl::Duration heartbeat)
    : sandbox_(std::move(sandbox)),
      kill_on_drop_(!spec.detach_on_disconnect),
      heartbeat_(heartbeat) {
  HttpRequest request = StreamRequest("POST", "/v1/exec");
  request.headers.Set("Content-Type", "application/json");
  // Always detached on the wire, so that a cut between here and there can be resumed; who does not
  // want that is served by the destructor, and by the daemon's own timeout.
  ExecSpec sent = spec;
  sent.detach_on_disconnect = true;
  // With an id of our own a command is found again, or ended, whose answer was lost.
  command_id_ = RandomHex(16);
  request.body = ExecRequestJson(sent, heartbeat, command_id_);
  request.resend = Resend::kNever;
  incarnation_ = sandbox_.daemon->incarnation;
  transfer_ = std::make_unique<Transfer>(sandbox_.client.http(), std::move(request));
}

OwnExec::OwnExec(SandboxHandle sandbox, ExecId id, int64_t stdout_offset, int64_t stderr_offset,
                 bool kill_on_drop, absl::Duration heartbeat)
    : sandbox_(std::move(sandbox)),
      kill_on_drop_(kill_on_drop),
      heartbeat_(heartbeat),
      command_id_(id.command_id),
      next_{stdout_offset, stderr_offset} {
  id_ = FormatExecId(id);
  incarnation_ = sandbox_.daemon->incarnation;
}

OwnExec::~OwnExec() {
  if (exited_ || spawn_failed_ || refused_ || !kill_on_drop_) return;
  // Of one whose id nobody has heard, nobody asks for the outcome.
  const std::string target =
      "/v1/exec/" + QueryEscape(command_id_) + (id_.empty() ? "" : "?keep=1");
  sandbox_.background.Start("kill an exec", [sandbox = sandbox_.ForBackground(kKillLimit), target] {
    return Kill(sandbox, target);
  });
}

// Until the daemon says that the exec has ended, or that there is none: then none of this id will
// start either, so it does not matter whether its start is still on the way.
Task<void> OwnExec::Kill(SandboxHandle sandbox, std::string target) {
  for (absl::Duration pause = kKillPause;; pause = std::min(2 * pause, kLongestKillPause)) {
    HttpRequest request =
        sandbox.client.Request(sandbox.context, *sandbox.daemon, "DELETE", target, kSmallLimit);
    const absl::StatusOr<HttpResponse> response = co_await sandbox.client.Fetch(
        sandbox.context, sandbox.daemon, std::move(request), kMaxErrorBody);
    const bool told = response.ok() && (response->status == 200 || response->status == 404);
    if (told || IsSandboxOver(response.status())) co_return;
    const absl::Duration left = sandbox.context.deadline - sandbox.loop().Now();
    const bool slept = left > pause && co_await sandbox.loop().Sleep(pause);
    if (!slept) co_return;
  }
}

HttpRequest OwnExec::StreamRequest(std::string_view method, std::string target) const {
  HttpRequest request =
      sandbox_.client.EndlessRequest(sandbox_.context, *sandbox_.daemon, method, target);
  request.idle_timeout = heartbeat_ + absl::Seconds(10);
  request.chunk_bytes = kExecBatchBytes;
  request.max_chunks = 2;
  request.receive_buffer = 64 * 1024;
  return request;
}

Task<absl::Status> OwnExec::Begin() {
  const bool starts = transfer_ != nullptr;
  absl::Status status = co_await BeginOnce();
  const bool cancelled = co_await Cancelled();
  if (status.ok() || cancelled || refused_ || !starts) co_return status;
  if (MetadataOf(status)["phase"] == "connect") {
    refused_ = true;  // it never got there
    co_return status;
  }
  // The answer was lost, not necessarily the command: ask for it by the id that it was given.
  transfer_.reset();
  const absl::Status again = co_await BeginOnce();
  co_return again.ok() ? again : status;
}

Task<absl::Status> OwnExec::BeginOnce() {
  CO_RETURN_IF_ERROR(co_await Open());
  ExecBatch none;
  while (!started_ && !spawn_failed_) {
    CO_RETURN_IF_ERROR(co_await ReadMore());
    // STARTED is the first frame; what lies behind it waits in the parser.
    ExecFrame frame;
    if (!parser_.Next(&frame)) {
      CO_RETURN_IF_ERROR(parser_.status());
      continue;
    }
    CO_RETURN_IF_ERROR(TakeFrame(frame, &none));
  }
  co_return absl::OkStatus();
}

// Waits for the answer's head. A refused start is spawn_failed_ or an error.
Task<absl::Status> OwnExec::Open() {
  if (transfer_ == nullptr) {
    transfer_ = std::make_unique<Transfer>(
        sandbox_.client.http(),
        StreamRequest("GET", "/v1/exec/" + QueryEscape(command_id_) +
                                 "/output?stdout=" + std::to_string(next_[0]) +
                                 "&stderr=" + std::to_string(next_[1]) + "&heartbeat_ms=" +
                                 std::to_string(std::clamp<int64_t>(
                                     absl::ToInt64Milliseconds(heartbeat_), 100, 3'600'000))));
    parser_ = {};
  }
  CO_ASSIGN_OR_RETURN(HttpHead head, co_await transfer_->Head());
  if (head.status == 200) {
    const bool frames = head.headers.Get("Content-Type").value_or("").starts_with(kFramesType);
    co_return frames ? absl::OkStatus() : UnexpectedContentType("a command");
  }
  HttpResponse response = AnswerOf(std::move(head));
  absl::StatusOr<std::string> body = co_await transfer_->ReadAll(kMaxErrorBody);
  if (body.ok()) response.body = *std::move(body);
  CO_RETURN_IF_ERROR(
      co_await sandbox_.client.ExpectDaemons(sandbox_.context, sandbox_.daemon, &response));
  ExecRefusal refusal = ParseExecRefusal(response);
  if (!refusal.spawn_failed) {
    // From 500 on it may be somebody between here and there who gave up waiting.
    refused_ = refused_ || (!started_ && response.status < 500);
    co_return refusal.status;
  }
  spawn_failed_ = std::move(refusal.spawn_failed);
  co_return absl::OkStatus();
}

// One more chunk of the stream. Not OK: it ended or was cut.
Task<absl::Status> OwnExec::ReadMore() {
  const bool more = co_await transfer_->Read(&chunk_);
  if (more) {
    parser_.Feed(chunk_);
    broken_since_ = absl::InfiniteDuration();
    co_return absl::OkStatus();
  }
  const absl::Status result = transfer_->result();
  if (!result.ok()) co_return result;
  co_return MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                      "the exec's stream ended before its last frame");
}

Task<absl::Status> OwnExec::Next(ExecBatch* batch, absl::Duration patience) {
  (void)patience;  // the daemon's heartbeats end the wait
  *batch = {};
  if (spawn_failed_) {
    ReportSpawnFailure(batch);
    co_return absl::OkStatus();
  }
  absl::Status status = TakeFrames(batch);
  const bool something = !batch->outputs.empty() || batch->exited || batch->drained;
  if (status.ok() && something) co_return status;
  if (status.ok()) {
    if (transfer_ != nullptr) {
      status = co_await ReadMore();
    } else {
      status = co_await Open();  // it was cut: go on at the next byte
    }
    if (status.ok()) status = TakeFrames(batch);
  }
  if (!status.ok()) status = co_await Forgive(std::move(status));
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
  if (status.ok()) co_return status;
  // Nothing more can be learnt.
  if (!exited_) {
    const bool over = IsSandboxOver(status);
    batch->exited = Lost{std::string(status.message()), !over};
    exited_ = over;  // else the destructor still tries to kill
  }
  batch->drained = drained_ = true;
  batch->stdout_bytes = next_[0];
  batch->stderr_bytes = next_[1];
  batch->lossy = true;
  co_return absl::OkStatus();
}

absl::Status OwnExec::TakeFrames(ExecBatch* batch) {
  ExecFrame frame;
  while (batch->bytes() < kExecBatchBytes && !batch->exited && !batch->drained &&
         parser_.Next(&frame)) {
    RETURN_IF_ERROR(TakeFrame(frame, batch));
  }
  return parser_.status();
}

absl::Status OwnExec::TakeFrame(const ExecFrame& frame, ExecBatch* batch) {
  switch (frame.type) {
    case ExecFrame::kStarted: {
      ASSIGN_OR_RETURN(ExecStarted started, ParseExecStarted(frame.payload));
      if (started.exec_id != command_id_) {
        return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                         "the sandbox's daemon answered with another exec than was asked for");
      }
      pid_ = started.pid;
      id_ = FormatExecId({.route = ExecId::Route::kOwn, .command_id = command_id_});
      started_ = true;
      return absl::OkStatus();
    }
    case ExecFrame::kStdout:
    case ExecFrame::kStderr: {
      const StreamId stream =
          frame.type == ExecFrame::kStdout ? StreamId::kStdout : StreamId::kStderr;
      int64_t& next = next_[Index(stream)];
      if (static_cast<int64_t>(frame.offset) != next) {
        return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                         "the sandbox's daemon left out output");
      }
      if (!skip_[Index(stream)]) {
        batch->outputs.push_back({stream, std::string(frame.payload), next});
      }
      next += static_cast<int64_t>(frame.payload.size());
      contradictions_ = 0;
      return absl::OkStatus();
    }
    case ExecFrame::kExited: {
      ASSIGN_OR_RETURN(ExecExited exited, ParseExecExited(frame.payload));
      if (exited_) return absl::OkStatus();  // told again after a resume
      exited_ = true;
      batch->exited = std::move(exited.outcome);
      batch->ran_for = exited.ran_for;
      return absl::OkStatus();
    }
    case ExecFrame::kDrained: {
      if (!exited_) {
        return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                         "the sandbox's daemon told no outcome of the exec");
      }
      ASSIGN_OR_RETURN(ExecDrained drained, ParseExecDrained(frame.payload));
      batch->drained = drained_ = true;
      batch->stdout_bytes = drained.stdout_bytes;
      batch->stderr_bytes = drained.stderr_bytes;
      batch->still_open = drained.still_open;
      // What it did not send is gone: it has forgotten the place where it could be asked for.
      batch->lossy = drained.stdout_bytes != next_[0] || drained.stderr_bytes != next_[1];
      return absl::OkStatus();
    }
    case ExecFrame::kError:
      return ParseExecRefusal({500, {}, std::string(frame.payload)}).status;
    default:
      return absl::OkStatus();  // heartbeats, and types that may come later
  }
}

// A cut stream is no loss yet: the daemon keeps the output. OK: try again. Not OK: the reason why
// the rest can never be had.
Task<absl::Status> OwnExec::Forgive(absl::Status why) {
  transfer_.reset();
  broken_since_ = std::min(broken_since_, sandbox_.loop().Now());
  const absl::Status explained = co_await sandbox_.client.directory().Explain(
      sandbox_.context, sandbox_.daemon->sandbox_id, why);
  const bool paused = SaysPaused(explained);
  if (paused) broken_since_ = absl::InfiniteDuration();
  if (ReasonOf(why) == ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL) ++contradictions_;
  const bool final = contradictions_ > kMaxContradictions ||
                     ReasonOf(why) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND ||
                     ReasonOf(why) == ErrorReason::ERROR_REASON_REPLAY_GAP ||
                     IsSandboxOver(explained);
  if (final || sandbox_.loop().Now() - broken_since_ > kResumeFor) co_return explained;
  (void)co_await sandbox_.loop().Sleep(kResumePause);
  co_return absl::OkStatus();
}

void OwnExec::Skip(StreamId stream) { skip_[Index(stream)] = true; }

void OwnExec::ReportSpawnFailure(ExecBatch* batch) {
  if (!exited_) {
    exited_ = true;
    batch->exited = *spawn_failed_;
  } else {
    batch->drained = drained_ = true;
  }
}

}  // namespace bridge
