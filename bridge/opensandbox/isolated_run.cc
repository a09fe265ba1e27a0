// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/isolated_run.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/net/event_stream.h"
#include "bridge/opensandbox/command_codec.h"
#include "bridge/opensandbox/exec_status.h"
#include "bridge/opensandbox/isolation_codec.h"
#include "bridge/opensandbox/isolation_script.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
constexpr absl::Duration kSmallLimit = absl::Seconds(10);
// Nothing is heard from a script that prints nothing: then the daemon is asked whether it lives.
constexpr absl::Duration kSilence = absl::Seconds(30);
// How long a script that was given up before it began is waited for, so that it can be killed
// without its session.
constexpr absl::Duration kQueueLimit = absl::Minutes(5);
constexpr absl::Duration kKillLimit = absl::Seconds(30);
constexpr absl::Duration kKillPause = absl::Milliseconds(200);
constexpr int kKillTries = 20;

std::string SessionTarget(std::string_view id) { return "/v1/isolated/session/" + QueryEscape(id); }

// "command exited with code 4", when an older daemon says it nowhere else.
std::optional<int> ExitCodeOf(const CommandEvent& event) {
  std::string_view text = event.error_value;
  constexpr std::string_view kPrefix = "command exited with code ";
  if (text.empty() && event.text.compare(0, kPrefix.size(), kPrefix) == 0) {
    text = std::string_view(event.text).substr(kPrefix.size());
  }
  int code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && code > 0 && code <= 255 ? std::optional<int>(code) : std::nullopt;
}

}  // namespace

absl::Status IsolationError(const HttpResponse& response, std::string_view what) {
  const absl::Status error = DaemonError(response, what);
  const std::string code = MetadataOf(error)["upstream_code"];
  if (response.status == 404 && code == "SESSION_NOT_FOUND") {
    return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "no isolated session of this id");
  }
  // An old daemon knows no such page; a newer one may lack what it needs.
  if ((response.status == 404 && code.empty()) ||
      (response.status == 503 && (code == "SERVICE_UNAVAILABLE" || code == "NOT_SUPPORTED"))) {
    return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                     response.status == 404 ? "this sandbox's daemon has no isolated sessions"
                                            : "this sandbox's daemon cannot isolate sessions here",
                     {.metadata = {{"feature", "isolation"}}});
  }
  return error;
}

class RunExchange {
 public:
  RunExchange(HttpClient& http, HttpRequest post, std::string mark)
      : transfer_(http, std::move(post)), mark_(std::move(mark)) {}

  // Reads once. False: nothing more will come, or the task was cancelled.
  Task<bool> Read() {
    if (over()) co_return false;
    if (!head_seen_) {
      absl::StatusOr<HttpHead> head = co_await transfer_.Head();
      const bool cancelled = co_await Cancelled();
      if (cancelled) co_return false;
      head_seen_ = head.ok();
      if (!head.ok()) co_return Break(head.status());
      if (head->status != 200) {
        HttpResponse response = AnswerOf(*std::move(head));
        absl::StatusOr<std::string> body = co_await transfer_.ReadAll(kMaxErrorBody);
        if (body.ok()) response.body = *std::move(body);
        co_return Break(IsolationError(response, "run a script in a session"));
      }
    }
    const bool more = co_await transfer_.Read(&chunk_);
    if (more) {
      parser_.Feed(chunk_);
      Take();
      co_return true;
    }
    const bool cancelled = co_await Cancelled();
    if (cancelled) co_return false;
    parser_.Finish();
    Take();
    if (!over()) {
      Break(transfer_.result().ok() ? MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                                                "the event stream ended before an exit status")
                                    : transfer_.result());
    }
    co_return false;
  }

  bool over() const { return exit_code || failed_ || !broken_.ok(); }
  bool started() const { return started_; }
  const absl::Status& broken() const { return broken_; }

  std::optional<int> exit_code;
  // The daemon's word for "the session could not do it"; text is not kept, it may hold a script.
  bool failed() const { return failed_; }
  std::vector<std::string> lines = {};  // that nobody has taken yet

 private:
  bool Break(absl::Status why) {
    broken_ = std::move(why);
    return false;
  }

  void Take() {
    using Type = CommandEvent::Type;
    std::string_view text;
    while (!over() && parser_.Next(&text)) {
      if (!ParseCommandEvent(text, &event_).ok()) {
        Break(MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL, "an event could not be read"));
        return;
      }
      switch (event_.type) {
        case Type::kStdout:
        case Type::kStderr:
          TakeLine();
          break;
        case Type::kComplete:
          exit_code = 0;
          break;
        case Type::kError:
          exit_code = ExitCodeOf(event_);
          failed_ = !exit_code.has_value();
          break;
        case Type::kFailure:
          failed_ = true;
          break;
        case Type::kInit:
        case Type::kPing:
        case Type::kOther:
          break;
      }
    }
    if (!over() && !parser_.status().ok()) Break(parser_.status());
  }

  // What children of earlier scripts print is output, too; they may have left a line unfinished.
  void TakeLine() {
    if (!started_) {
      const size_t at = event_.text.find(mark_);
      if (at != std::string::npos) {
        started_ = true;
        if (at == 0) return;
        event_.text.resize(at);
      }
    }
    lines.push_back(std::move(event_.text));
  }

  Transfer transfer_;
  const std::string mark_;
  EventStreamParser parser_;
  CommandEvent event_;
  std::string chunk_;
  absl::Status broken_;
  bool head_seen_ = false;
  bool started_ = false;
  bool failed_ = false;
};

namespace {

// Kills a script and waits for its end, which is in *exchange then; the session lives on.
Task<void> KillRun(SandboxHandle sandbox, std::shared_ptr<RunExchange> exchange, std::string mark) {
  const auto read_until = [&sandbox, &exchange](absl::Duration bound, auto enough) -> Task<void> {
    (void)co_await RunWithin(sandbox.loop(), bound, [&]() -> Task<void> {
      bool more = true;
      while (more && !enough()) more = co_await exchange->Read();
    });
  };
  co_await read_until(kQueueLimit, [&] { return exchange->started(); });
  for (int i = 0; i < kKillTries && !exchange->over(); ++i) {
    // The mark is printed just before the script is there to be found: so more than once.
    (void)co_await RunScript(sandbox.client, sandbox.ForBackground(kKillLimit).context,
                             sandbox.daemon, KillRunScript(mark), nullptr);
    const bool cancelled = co_await Cancelled();
    if (cancelled) co_return;
    co_await read_until(kKillPause, [] { return false; });
  }
}

}  // namespace

IsolatedRun::IsolatedRun(SandboxHandle sandbox, std::string session_id, std::string mark,
                         const std::string& code, absl::Duration timeout)
    : sandbox_(std::move(sandbox)),
      session_id_(std::move(session_id)),
      mark_(std::move(mark)),
      timeout_(timeout),
      exchange_(std::make_shared<RunExchange>(
          sandbox_.client.http(),
          EventStreamPost(sandbox_.client, sandbox_.context, *sandbox_.daemon,
                          SessionTarget(session_id_) + "/run", SessionRunJson(code)),
          mark_)) {
  fidelity_ = ExecFidelity::kLines;
  incarnation_ = sandbox_.daemon->incarnation;
}

IsolatedRun::~IsolatedRun() {
  if (exchange_->over()) return;
  sandbox_.background.Start(
      "kill a script in an isolated session",
      [sandbox = sandbox_.ForBackground(kQueueLimit), exchange = exchange_,
       mark = mark_]() -> Task<void> { co_await KillRun(sandbox, exchange, mark); });
}

Task<absl::Status> IsolatedRun::AwaitStart() {
  bool more = true;
  while (more && !exchange_->started()) more = co_await exchange_->Read();
  started_ = heard_ = sandbox_.loop().Now();
  if (exchange_->started()) co_return absl::OkStatus();
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
  co_return co_await NotStarted();
}

// A session whose shell has ended still has a record, for a while.
Task<absl::Status> IsolatedRun::NotStarted() {
  const absl::Status& broken = exchange_->broken();
  if (!broken.ok()) {
    const ErrorReason reason = ReasonOf(broken);
    if (reason == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND ||
        reason == ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE) {
      co_return broken;
    }
    co_return co_await sandbox_.client.directory().Explain(sandbox_.context,
                                                           sandbox_.daemon->sandbox_id, broken);
  }
  HttpRequest request = sandbox_.client.Request(sandbox_.context, *sandbox_.daemon, "GET",
                                                SessionTarget(session_id_), kSmallLimit);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox_.client.Fetch(sandbox_.context, sandbox_.daemon,
                                                     std::move(request), kMaxErrorBody));
  if (response.status != 200) co_return IsolationError(response, "tell a session's state");
  IsolatedSession session;
  CO_RETURN_IF_ERROR(ParseSessionState(response.body, &session));
  if (!session.active) {
    co_return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND,
                        "the session's shell has ended; open another session");
  }
  co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                      "the session takes no scripts any more; close it and open another one");
}

// Whether the daemon still knows the session. A paused sandbox is as alive as its record says.
Task<bool> IsolatedRun::Alive() {
  HttpRequest request = sandbox_.client.Request(sandbox_.context, *sandbox_.daemon, "GET",
                                                SessionTarget(session_id_), kSmallLimit);
  absl::StatusOr<HttpResponse> response = co_await sandbox_.client.Fetch(
      sandbox_.context, sandbox_.daemon, std::move(request), kMaxErrorBody);
  if (response.ok()) co_return response->status == 200;
  co_return SaysPaused(response.status());
}

Task<absl::Status> IsolatedRun::Next(ExecBatch* batch, absl::Duration patience) {
  *batch = {};
  if (reported_) {
    batch->drained = batch->lossy = true;
    batch->stdout_bytes = produced_;
    co_return absl::OkStatus();
  }
  if (exchange_->lines.empty() && !exchange_->over()) {
    const absl::Duration left = started_ + timeout_ - sandbox_.loop().Now();
    const absl::Duration wait =
        std::min({patience, kSilence, std::max(left, absl::ZeroDuration())});
    const bool heard = co_await RunWithin(
        sandbox_.loop(), wait, [this]() -> Task<void> { (void)co_await exchange_->Read(); });
    const bool cancelled = co_await Cancelled();
    if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
    const absl::Duration now = sandbox_.loop().Now();
    if (heard) heard_ = now;
    if (!exchange_->over() && now >= started_ + timeout_) {
      late_ = true;
      co_await KillRun(sandbox_, exchange_, mark_);
    }
  }
  TakeLines(batch);
  if (!batch->outputs.empty()) co_return absl::OkStatus();
  bool lost = false;
  if (!exchange_->over() && !late_) {
    if (sandbox_.loop().Now() - heard_ < kSilence) co_return absl::OkStatus();
    heard_ = sandbox_.loop().Now();
    const bool alive = co_await Alive();
    if (alive) co_return absl::OkStatus();
    lost = true;
  }
  if (lost) {
    batch->exited = Lost{"the sandbox's daemon fell silent", true};
  } else {
    batch->exited = co_await HowItEnded();
  }
  if (!std::holds_alternative<Lost>(*batch->exited)) {
    batch->ran_for = sandbox_.loop().Now() - started_;
  }
  reported_ = true;
  co_return absl::OkStatus();
}

void IsolatedRun::TakeLines(ExecBatch* batch) {
  if (exchange_->lines.empty()) return;
  ExecOutput output{StreamId::kStdout, {}, produced_};
  for (const std::string& line : exchange_->lines) (output.data += line) += '\n';
  exchange_->lines.clear();
  produced_ += static_cast<int64_t>(output.data.size());
  batch->outputs.push_back(std::move(output));
}

Task<Outcome> IsolatedRun::HowItEnded() {
  if (late_) {
    if (exchange_->over()) co_return TimedOut{timeout_};
    co_return Lost{"its time was up and it could not be killed", true};
  }
  if (exchange_->exit_code) co_return ExitCode{*exchange_->exit_code};
  if (exchange_->failed()) co_return Lost{"the session ended while the script ran", false};
  // The stream broke: nobody can tell how the script ended, nor whether it has.
  const bool alive = co_await Alive();
  co_return Lost{std::string(exchange_->broken().message()), alive};
}

}  // namespace bridge
