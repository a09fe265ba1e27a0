// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_attachment.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/no_room.h"
#include "bridge/opensandbox/process_replay.h"
#include "bridge/opensandbox/process_script.h"
#include "bridge/opensandbox/process_socket.h"
#include "bridge/opensandbox/process_state.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr uint16_t kTakenOver = 4001;
constexpr uint16_t kPolicy = 1008;  // how the server's proxy passes on 404 and 409
// So far before the wanted byte the replay begins, to see an end that was told before it, and of
// which mark a copy lies before that (PutReplayInOrder).
constexpr int64_t kLookBack = 2 * kMarkSpread;
constexpr absl::Duration kClosePatience = absl::Seconds(2);
constexpr absl::Duration kEndPause = absl::Milliseconds(50);
// A mark is written at once: its rest does not take long.
constexpr absl::Duration kMarkPatience = absl::Milliseconds(50);
constexpr absl::Duration kMaxMarkPatience = absl::Seconds(5);
constexpr size_t kMaxKept = 1 << 20;  // behind what may be the beginning of a mark

absl::Status ReplayGap(int64_t first_available) {
  return MakeError(ErrorReason::ERROR_REASON_REPLAY_GAP,
                   "output before the first byte still held was asked for",
                   {.metadata = {{"first_available", std::to_string(first_available)}}});
}

}  // namespace

ProcessAttachment::ProcessAttachment(SandboxHandle sandbox, ProcessKey key, std::string folder)
    : sandbox_(std::move(sandbox)),
      key_(std::move(key)),
      folder_(std::move(folder)),
      scanner_(key_.nonce, key_.terminal),
      numbering_(key_.terminal) {}

ProcessAttachment::~ProcessAttachment() {
  if (socket_ != nullptr) LetGoOfProcess(sandbox_, std::move(socket_), taken_ < sent_);
}

Task<absl::Status> ProcessAttachment::Open(AttachOptions options) {
  CO_ASSIGN_OR_RETURN(PtyState state, co_await FetchPtyState(sandbox_, key_.session));
  if (state.output_offset > 0) {
    CO_ASSIGN_OR_RETURN(const ProcessMarks marks, co_await FetchProcessMarks(sandbox_, folder_));
    numbering_.Begin(marks.count);
    told_end_ = marks.ended;
  }
  // After an end at most, since the daemon may not have read its marker yet; the replay tells
  // exactly. While it runs a wrong offset must be refused here, before anybody is displaced.
  const int read = numbering_.marks() - (numbering_.ended() ? 1 : 0);
  int64_t end = state.output_offset - numbering_.HiddenBytes(read);
  if (options.offset.value_or(0) > end) {
    // A marker may have been printed between the two questions.
    CO_ASSIGN_OR_RETURN(state, co_await FetchPtyState(sandbox_, key_.session));
    end = state.output_offset - numbering_.HiddenBytes(read);
  }
  if (options.offset.value_or(0) > end) {
    co_return InvalidField("attach.offset", "lies ahead of the output");
  }
  wanted_ = options.offset;
  bool started = state.output_offset > 0;
  if (!state.running && !started) {
    CO_ASSIGN_OR_RETURN(started, co_await WasProcessStarted(sandbox_, folder_));
  }
  if (!state.running && started) {
    // Even the wrapper is gone, and attaching would run everything again.
    if (!options.restart_if_exited) {
      const int64_t first = numbering_.ToApi(state.output_offset);
      if (options.offset.value_or(first) < first) co_return ReplayGap(first);
      next_ = options.offset.value_or(first);
      events_.push_back(Attached{next_, false, false, !key_.terminal});
      Conclude(told_end_.value_or(LostWithItsWrapper()));
      co_return absl::OkStatus();
    }
    restarted_ = true;
  }
  restart_wanted_ = options.restart_if_exited;
  // Whether the marker of an end has been read can only be seen by looking at all that is kept.
  // Else: the daemon's number of a byte is never below the API's.
  const int64_t since = numbering_.ended() ? 0 : options.offset.value_or(end) - kLookBack;
  CO_ASSIGN_OR_RETURN(socket_, co_await OpenProcessSocket(
                                   sandbox_, key_, std::max<int64_t>(0, since), options.takeover));
  co_return co_await AwaitConnected();
}

// Replay, then "connected". What the replay tells comes out behind Attached.
Task<absl::Status> ProcessAttachment::AwaitConnected() {
  WebSocketMessage message;
  bool connected = false;
  while (!connected) {
    const bool more = co_await socket_->Read(&message);
    if (!more) {
      const bool cancelled = co_await Cancelled();
      if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
      const auto code = socket_->end().code;
      if (code == kPolicy || code == kTakenOver) co_return AlreadyAttached();
      co_return co_await Unreachable("before it was attached");
    }
    CO_ASSIGN_OR_RETURN(PtyFrame frame, ParsePtyFrame(std::move(message)));
    if (frame.kind == PtyFrame::Kind::kConnected) {
      connected = true;
    } else if (frame.kind == PtyFrame::Kind::kReplay) {
      CO_RETURN_IF_ERROR(TakeReplay(std::move(frame)));
    } else {
      CO_RETURN_IF_ERROR(TakeFrame(std::move(frame)));
    }
  }
  const int64_t wanted = wanted_.value_or(next_);
  if (wanted > next_ + static_cast<int64_t>(scanner_.kept_bytes())) {
    co_return InvalidField("attach.offset", "lies ahead of the output");
  }
  if (!wanted_) {  // what was replayed only to be looked at for marks
    std::erase_if(events_, [](const auto& e) { return std::holds_alternative<ProcessOutput>(e); });
  }
  wanted_ = wanted;
  const bool ended = Ended();
  if (ended && restart_wanted_) {
    CO_RETURN_IF_ERROR(co_await Restart());
    restarted_ = true;
  }
  events_.push_front(Attached{wanted, !ended || restarted_, restarted_, !key_.terminal});
  if (ended && !restarted_) Conclude(*outcome_);
  co_return absl::OkStatus();
}

// The marks in it tell how many lie before it. Without one it is as many as there are; but the mark
// of an end, which the wrapper has printed, the daemon may not have read yet.
absl::Status ProcessAttachment::TakeReplay(PtyFrame frame) {
  const auto size = static_cast<int64_t>(frame.data.size());
  const ProcessReplay replay =
      PutReplayInOrder(key_.nonce, key_.terminal, frame.offset, std::move(frame.data));
  if (replay.before) {
    numbering_.Begin(replay.before->marks, replay.before->hidden);
  } else if (frame.offset == 0) {
    numbering_.Begin(0);
  } else if (numbering_.ended() && size < kMarkSpread) {
    numbering_.Begin(numbering_.marks() - 1);
  } else if (numbering_.ended()) {
    // What the program left behind has printed all this since.
    outcome_ = told_end_;
    marks_ = 2;
  }
  const int64_t first = numbering_.ToApi(replay.offset);
  if (wanted_ && first > *wanted_) return ReplayGap(first);
  next_ = first;
  TakeOutput(std::nullopt, replay.data);
  if (replay.before && replay.before->last_copy && outcome_) ++marks_;
  return absl::OkStatus();
}

Task<absl::Status> ProcessAttachment::Restart() {
  outcome_.reset();
  marks_ = 0;
  CO_ASSIGN_OR_RETURN(int code,
                      co_await RunScript(sandbox_.client, sandbox_.context, sandbox_.daemon,
                                         RestartScript(folder_, numbering_.marks()), nullptr));
  if (code == 0) co_return absl::OkStatus();
  co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                      "the shell that watches the process in the sandbox does not run it again");
}

Task<absl::StatusOr<ProcessEvent>> ProcessAttachment::Next() {
  while (events_.empty()) {
    if (scanner_.kept_bytes() > kMaxKept) {
      co_await Decide();
      if (scanner_.undecided())
        co_return co_await Unreachable("the mark of an end did not come whole");
      continue;
    }
    WebSocketMessage message;
    bool more = false;
    // Output may follow the news of the wrapper's end; then the daemon closes, or ought to.
    const absl::Duration patience =
        wrapper_end_ ? kClosePatience
                     : std::max(decide_at_ - sandbox_.loop().Now(), absl::ZeroDuration());
    const bool in_time = co_await RunWithin(
        sandbox_.loop(), patience,
        [this, &more, &message]() -> Task<void> { more = co_await socket_->Read(&message); });
    if (more) {
      CO_ASSIGN_OR_RETURN(PtyFrame frame, ParsePtyFrame(std::move(message)));
      CO_RETURN_IF_ERROR(TakeFrame(std::move(frame)));
      continue;
    }
    const bool cancelled = co_await Cancelled();
    if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
    if (in_time || wrapper_end_) {
      CO_RETURN_IF_ERROR(co_await TakeEnd());
    } else {
      co_await Decide();
    }
  }
  ProcessEvent event = std::move(events_.front());
  events_.pop_front();
  co_return event;
}

absl::Status ProcessAttachment::TakeFrame(PtyFrame frame) {
  switch (frame.kind) {
    case PtyFrame::Kind::kOutput:
      TakeOutput(frame.stream, frame.data);
      if (Ended()) Conclude(*outcome_);
      return absl::OkStatus();
    case PtyFrame::Kind::kPong:
      // A daemon may answer for input that went nowhere since nobody is there to take it.
      if (!pings_.empty() && !wrapper_end_ && !input_broken_) {
        taken_ = pings_.front();
        events_.push_back(StdinTaken{taken_});
        pings_.pop_front();
      }
      return absl::OkStatus();
    case PtyFrame::Kind::kExit:
      // The wrapper itself ended, which it does only when it is killed.
      wrapper_end_ = outcome_.value_or(frame.exit_code < 0 ? Outcome(Signalled{})
                                                           : Outcome(ExitCode{frame.exit_code}));
      return absl::OkStatus();
    case PtyFrame::Kind::kError:
      if (frame.no_room) return NoRoomError();
      // Of those who take it over at the same time one is the last, and one waits in vain.
      if (frame.code == "ALREADY_CONNECTED") return AlreadyAttached();
      if (frame.code == "STDIN_WRITE_FAILED") {
        // The wrapper reads as long as it lives. Whether it is dead is asked when the daemon has
        // closed, as it does now.
        input_broken_ = true;
        return absl::OkStatus();
      }
      return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                       "the sandbox's daemon failed to run the process",
                       {.metadata = {{"upstream_code", frame.code}}});
    default:
      return absl::OkStatus();
  }
}

void ProcessAttachment::TakeOutput(std::optional<StreamId> stream, std::string_view bytes) {
  TakePieces(scanner_.Feed(stream, bytes));
  if (!scanner_.undecided()) {
    decide_at_ = absl::InfiniteDuration();
  } else if (decide_at_ == absl::InfiniteDuration()) {
    decide_pause_ = kMarkPatience;
    decide_at_ = sandbox_.loop().Now() + decide_pause_;
  }
}

void ProcessAttachment::TakePieces(std::vector<ProcessMarkScanner::Piece> pieces) {
  for (ProcessMarkScanner::Piece& piece : pieces) {
    if (piece.mark) {
      TakeMark(*piece.mark);
      continue;
    }
    const auto skipped =
        static_cast<size_t>(std::clamp<int64_t>(wanted_.value_or(0) - next_, 0, piece.data.size()));
    const int64_t offset = next_ + static_cast<int64_t>(skipped);
    next_ += static_cast<int64_t>(piece.data.size());
    if (offset == next_) continue;
    piece.data.erase(0, skipped);
    events_.push_back(ProcessOutput{offset, piece.stream, std::move(piece.data)});
  }
}

// Output paused behind what may be the beginning of a mark. It is none when the wrapper still
// waits for the program's end, and all that it has printed before was seen.
Task<void> ProcessAttachment::Decide() {
  if (numbering_.whole() && !numbering_.ended()) {
    const absl::StatusOr<bool> running = co_await IsProcessRunning(sandbox_, folder_);
    if (running.ok() && *running) {
      TakePieces(scanner_.Release());
      decide_at_ = absl::InfiniteDuration();
      co_return;
    }
  }
  decide_pause_ = std::min(2 * decide_pause_, kMaxMarkPatience);
  decide_at_ = sandbox_.loop().Now() + decide_pause_;
}

void ProcessAttachment::TakeMark(ProcessMark mark) {
  numbering_.Take(mark);
  const std::optional<Outcome> outcome = OutcomeOfMark(mark);
  if (!outcome) {  // it runs once more
    outcome_.reset();
    marks_ = 0;
    return;
  }
  outcome_ = outcome;
  ++marks_;
}

Task<absl::Status> ProcessAttachment::TakeEnd() {
  const std::optional<uint16_t> code = socket_->end().code;
  if (!wrapper_end_ && code == kTakenOver) {
    events_.push_back(Displaced{});
    over_ = true;
    co_return absl::OkStatus();
  }
  if (wrapper_end_ || input_broken_) co_return co_await TakeDeath();
  absl::Status lost = co_await Unreachable(code ? "it was closed" : "without a word");
  if (ReasonOf(lost) != ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE) co_return lost;
  const absl::StatusOr<PtyState> state = co_await FetchPtyState(sandbox_, key_.session);
  const bool unknown = ReasonOf(state.status()) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND;
  if (!unknown && (!state.ok() || state->running)) co_return lost;
  Conclude(outcome_.value_or(LostWithItsWrapper()));
  co_return absl::OkStatus();
}

// The daemon says that the wrapper is dead, or found nobody there to take input.
Task<absl::Status> ProcessAttachment::TakeDeath() {
  Outcome end = outcome_ ? *outcome_ : wrapper_end_.value_or(Signalled{});
  if (!outcome_ && std::holds_alternative<Signalled>(end)) {
    // By a caller who deleted the process, after which the daemon does not know it; or by others.
    const absl::StatusOr<PtyState> state = co_await AskForEnd();
    if (ReasonOf(state.status()) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) {
      end = CancelledEnd{true};
    } else if (!state.ok()) {
      co_return state.status();
    } else if (state->running && !wrapper_end_) {
      co_return co_await Unreachable("its input could not be written");
    }
  }
  Conclude(std::move(end));
  co_return absl::OkStatus();
}

// The daemon may need a moment to find out after it could not write.
Task<absl::StatusOr<PtyState>> ProcessAttachment::AskForEnd() {
  const absl::Duration until = sandbox_.loop().Now() + kClosePatience;
  while (true) {
    absl::StatusOr<PtyState> state = co_await FetchPtyState(sandbox_, key_.session);
    if (wrapper_end_ || !state.ok() || !state->running) co_return state;
    const bool slept = co_await sandbox_.loop().Sleep(kEndPause);
    if (!slept || sandbox_.loop().Now() > until) co_return state;
  }
}

// Why the connection is gone: what became of the sandbox, or nothing that is known.
Task<absl::Status> ProcessAttachment::Unreachable(std::string why) {
  absl::Status lost = MakeError(
      ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
      "the connection to the process was lost (" + why + "); attach again at the last offset");
  co_return co_await sandbox_.client.directory().Explain(
      sandbox_.context, sandbox_.daemon->sandbox_id, std::move(lost));
}

void ProcessAttachment::Conclude(Outcome outcome) {
  if (over_) return;
  over_ = true;
  TakePieces(scanner_.Release());
  events_.push_back(ProcessExited{std::move(outcome)});
  events_.push_back(ProcessDrained{std::max(next_, wanted_.value_or(0))});
}

}  // namespace bridge
