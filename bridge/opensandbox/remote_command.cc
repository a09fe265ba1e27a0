// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/remote_command.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/signal_names.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/exec_status.h"
#include "bridge/opensandbox/no_room.h"

namespace bridge {
namespace {

// The daemon pings every 3 s. Silence for longer means that nobody is there any more.
constexpr absl::Duration kSilence = absl::Seconds(15);
constexpr absl::Duration kStatusLimit = absl::Seconds(10);
// After its limit, when the daemon ought to have told that a script was over it.
constexpr absl::Duration kScriptPatience = absl::Seconds(5);
// DELETE /command answers after 3 s at the latest.
constexpr absl::Duration kInterruptLimit = absl::Seconds(10);
// Of output that comes before the command's id; daemons send the id first.
constexpr size_t kMaxEarlyBytes = 1 << 20;
// Of what a script of the bridge's own prints: a line for each of the bridge's processes, at most.
constexpr size_t kMaxScriptOutput = 16 << 20;
constexpr size_t kMaxErrorBody = 64 * 1024;
// A stock daemon tells a command's id some moments before it has a status for it.
constexpr int kStatusLooks = 4;
constexpr absl::Duration kStatusPause = absl::Milliseconds(100);

// A page of something between us and the daemon is no event stream.
bool MayHoldEvents(const HttpHead& head) {
  const std::string_view type = head.headers.Get("Content-Type").value_or("");
  return type.empty() || type.find("event-stream") != std::string_view::npos ||
         type.find("json") != std::string_view::npos;
}

}  // namespace

HttpRequest EventStreamPost(DaemonClient& client, const CallContext& context, const Daemon& daemon,
                            std::string_view target, std::string body) {
  HttpRequest post = client.EndlessRequest(context, daemon, "POST", target);
  post.headers.Set("Content-Type", "application/json");
  post.headers.Set("Accept", "text/event-stream");
  post.body = std::move(body);
  post.resend = Resend::kNever;
  return post;
}

RemoteCommand::RemoteCommand(DaemonClient& client, CallContext context,
                             std::shared_ptr<Daemon> daemon, const CommandRequest& request)
    : client_(client),
      context_(std::move(context)),
      daemon_(std::move(daemon)),
      transfer_(client.http(), EventStreamPost(client, context_, *daemon_, "/command",
                                               CommandRequestJson(request))),
      asked_(client.loop().Now()) {}

absl::Duration RemoteCommand::ran_for() const {
  return std::min(ended_at_, client_.loop().Now()) - asked_;
}

Task<absl::Status> RemoteCommand::AwaitId() {
  if (!head_seen_) {
    CO_ASSIGN_OR_RETURN(HttpHead head, co_await transfer_.Head());
    head_seen_ = true;
    if (head.status != 200) {
      refused_ = true;
      HttpResponse response = AnswerOf(std::move(head));
      absl::StatusOr<std::string> body = co_await transfer_.ReadAll(kMaxErrorBody);
      if (body.ok()) response.body = *std::move(body);
      CO_RETURN_IF_ERROR(co_await client_.ExpectDaemons(context_, daemon_, &response));
      co_return DaemonError(response, "start a command");
    }
    if (!MayHoldEvents(head)) {
      refused_ = true;
      co_return UnexpectedContentType("a command");
    }
  }
  bool more = true;
  while (id_.empty() && !ended_ && !broken() && more) {
    more = co_await ReadMore();
  }
  if (!id_.empty() || ended_) co_return absl::OkStatus();
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
  co_return broken_why_;
}

Task<bool> RemoteCommand::ReadEvents(std::vector<CommandEvent>* events) {
  events->clear();
  if (pending_.empty() && !ended_ && !broken()) (void)co_await ReadMore();
  events->swap(pending_);
  // Output and the terminal event may lie in one chunk: the output first.
  if (!events->empty()) co_return true;
  const bool cancelled = co_await Cancelled();
  co_return !ended_ && !broken() && !cancelled;
}

// Reads once and takes what came. False: nothing more will come, or the task was cancelled.
Task<bool> RemoteCommand::ReadMore() {
  bool more = false;
  const bool heard = co_await RunWithin(client_.loop(), kSilence, [this, &more]() -> Task<void> {
    more = co_await transfer_.Read(&chunk_);
  });
  if (more) {
    parser_.Feed(chunk_);
    TakeEvents();
    co_return true;
  }
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return false;
  if (!heard) co_return co_await EndureSilence();
  parser_.Finish();
  TakeEvents();
  if (ended_) co_return false;
  absl::Status why = transfer_.result();
  if (why.ok() && broken()) co_return false;
  if (!id_.empty()) {
    why = MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                    "the event stream ended before an exit status");
  } else if (why.ok()) {
    why = MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                    "the sandbox's daemon answered a command without an event");
  }
  broken_why_ = std::move(why);  // half an event at a cut is no fault of its own
  co_return false;
}

// A paused sandbox is silent and its connection goes on after the pause. Any other silence is an
// end.
Task<bool> RemoteCommand::EndureSilence() {
  absl::Status silent =
      MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE, "the sandbox's daemon fell silent");
  const absl::Status explained =
      co_await client_.directory().Explain(context_, daemon_->sandbox_id, std::move(silent));
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return false;
  const bool paused = SaysPaused(explained);
  if (!paused) Break(explained);
  co_return paused;
}

// All events that the parser has, up to the terminal one; after that nothing counts.
void RemoteCommand::TakeEvents() {
  using Type = CommandEvent::Type;
  std::string_view text;
  while (!ended_ && parser_.Next(&text)) {
    if (const absl::Status parsed = ParseCommandEvent(text, &event_); !parsed.ok()) {
      return Break(parsed);
    }
    switch (event_.type) {
      case Type::kInit:
        if (id_.empty()) id_ = event_.text;
        break;
      case Type::kStdout:
      case Type::kStderr:
        if (id_.empty()) early_bytes_ += event_.text.size();
        if (early_bytes_ > kMaxEarlyBytes) {
          return Break(MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                                 "the sandbox's daemon sent output of a command that it did not "
                                 "name"));
        }
        pending_.push_back(std::move(event_));
        break;
      case Type::kComplete:
        ended_ = ExitCode{0};
        break;
      case Type::kError:
        ended_ = OutcomeOfError(event_.error_value, event_.error_trace);
        break;
      case Type::kFailure:
        return Break(MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                               std::string("the sandbox's daemon failed ") +
                                   (id_.empty() ? "to start a command" : "while the command ran"),
                               {.metadata = {{"upstream_code", event_.code.substr(0, 64)}}}));
      case Type::kPing:
      case Type::kOther:
        break;
    }
  }
  if (ended_) ended_at_ = client_.loop().Now();
  if (!parser_.status().ok()) Break(parser_.status());
}

void RemoteCommand::Break(absl::Status why) {
  if (!broken()) broken_why_ = std::move(why);
}

Task<absl::StatusOr<CommandStatus>> FetchCommandStatus(DaemonClient& client, CallContext context,
                                                       std::shared_ptr<Daemon> daemon,
                                                       std::string id) {
  HttpResponse response;
  for (int look = 0; look < kStatusLooks; ++look) {
    if (look > 0) {
      const bool slept = co_await client.loop().Sleep(kStatusPause);
      if (!slept) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
    }
    HttpRequest request =
        client.Request(context, *daemon, "GET", "/command/status/" + QueryEscape(id), kStatusLimit);
    CO_ASSIGN_OR_RETURN(response,
                        co_await client.Fetch(context, daemon, std::move(request), 1 << 20));
    if (response.status != 404) break;
  }
  if (response.status == 404) {
    co_return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND,
                        "the sandbox's daemon knows no command of this id");
  }
  if (response.status != 200) co_return DaemonError(response, "tell a command's status");
  co_return ParseCommandStatus(response.body);
}

Task<absl::Status> InterruptCommand(DaemonClient& client, CallContext context,
                                    std::shared_ptr<Daemon> daemon, std::string id) {
  HttpRequest request =
      client.Request(context, *daemon, "DELETE", "/command?id=" + QueryEscape(id), kInterruptLimit);
  absl::StatusOr<HttpResponse> response =
      co_await client.Fetch(context, daemon, std::move(request), kMaxErrorBody);
  // 200 says that it is over. Anything else may as well mean "it was over before": look.
  if (response.ok() && response->status == 200) co_return absl::OkStatus();
  CO_ASSIGN_OR_RETURN(CommandStatus status,
                      co_await FetchCommandStatus(client, context, daemon, id));
  if (!status.running) co_return absl::OkStatus();
  if (!response.ok()) co_return response.status();
  co_return DaemonError(*response, "interrupt a command");
}

namespace {

absl::Status ScriptTimeout(absl::Duration limit) {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT,
                   "a script of the bridge's own was not done in the sandbox within " +
                       absl::FormatDuration(limit) +
                       " and was ended; part of its work may be done. Try again when the sandbox "
                       "is less busy, or do what takes so long by a command",
                   {.metadata = {{"phase", "answer"}}});
}

// To the end of a script. Goes on where it was cancelled.
Task<absl::Status> FollowScript(RemoteCommand& command, std::vector<std::string>* out_lines) {
  CO_RETURN_IF_ERROR(co_await command.AwaitId());
  std::vector<CommandEvent> events;
  size_t printed = 0;
  bool more = true;
  while (more) {
    more = co_await command.ReadEvents(&events);
    for (CommandEvent& event : events) {
      if (out_lines == nullptr || event.type != CommandEvent::Type::kStdout) continue;
      printed += event.text.size();
      out_lines->push_back(std::move(event.text));
    }
    events.clear();
    if (printed > kMaxScriptOutput) {
      co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                          "a script of the bridge's own printed more than 16 MiB in the sandbox");
    }
  }
  co_return absl::OkStatus();
}

// What the end of a script means to whoever wanted it done.
absl::StatusOr<int> ResultOfScript(const Outcome& ended, absl::Duration limit,
                                   absl::Duration ran_for) {
  if (const auto* exit = std::get_if<ExitCode>(&ended)) return exit->code;
  if (const auto* signalled = std::get_if<Signalled>(&ended)) {
    const Outcome why = WithTimeout(*signalled, limit, ran_for);
    if (std::holds_alternative<TimedOut>(why)) return ScriptTimeout(limit);
    // Only SIGKILL is what a sandbox without memory would send.
    const std::string name = SignalName(signalled->number);
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                     "a script of the bridge's own was killed in the sandbox before it was done (" +
                         (name.empty() ? "by a signal" : name) + ")" +
                         (name == "SIGKILL" ? "; the sandbox may have too little memory" : ""));
  }
  const auto* failed = std::get_if<SpawnFailed>(&ended);
  if (failed != nullptr && failed->kind == SpawnFailed::Kind::kNoRoom) {
    return NoRoomError();
  }
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                   "a script of the bridge's own could not be run in the sandbox");
}

}  // namespace

Task<absl::StatusOr<int>> RunScript(DaemonClient& client, CallContext context,
                                    std::shared_ptr<Daemon> daemon, std::string script,
                                    std::vector<std::string>* out_lines, absl::Duration limit) {
  RemoteCommand command(client, context, daemon, {.command = std::move(script), .timeout = limit});
  absl::Status status;
  bool over = false;
  while (!over) {
    over = co_await RunWithin(client.loop(), limit + kScriptPatience,
                              [&command, &status, out_lines]() -> Task<void> {
                                status = co_await FollowScript(command, out_lines);
                              });
    const bool cancelled = co_await Cancelled();
    if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
    if (over) break;
    status = co_await client.directory().Explain(context, daemon->sandbox_id, ScriptTimeout(limit));
    over = !SaysPaused(status);
  }
  CO_RETURN_IF_ERROR(co_await client.Explained(context, daemon, status));
  if (command.ended()) co_return ResultOfScript(*command.ended(), limit, command.ran_for());
  co_return WithContext(command.broken_why(), "a script of the bridge's own was cut off");
}

}  // namespace bridge
