// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_client.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/random.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/exec_cleanup.h"
#include "bridge/opensandbox/exec_files.h"
#include "bridge/opensandbox/exec_frames.h"
#include "bridge/opensandbox/exec_lines.h"
#include "bridge/opensandbox/exec_outcome.h"
#include "bridge/opensandbox/exec_own.h"
#include "bridge/opensandbox/exec_status.h"
#include "bridge/opensandbox/file_codec.h"
#include "bridge/opensandbox/multipart.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr absl::Duration kSmallLimit = absl::Seconds(10);
constexpr absl::Duration kUploadLimit = absl::Seconds(60);
constexpr absl::Duration kKillLimit = absl::Seconds(30);
constexpr size_t kMaxPasswd = 1 << 20;
constexpr size_t kMaxSmallBody = 64 * 1024;
constexpr int kSigTerm = 15;
constexpr int kSigKill = 9;

absl::Status Unsupported(std::string_view feature, std::string_view why) {
  return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE, why,
                   {.metadata = {{"feature", std::string(feature)}}});
}

// The request never reached anybody, because what was remembered of the sandbox is no longer true.
bool NeverArrived(const absl::Status& status) {
  return !status.ok() && MetadataOf(status)["phase"] == "connect";
}

// An id of a route that this daemon does not have was made in another sandbox.
absl::Status CheckRoute(const ExecId& id, const DaemonCapabilities& daemon) {
  if ((id.route == ExecId::Route::kOwn) == daemon.own()) return absl::OkStatus();
  return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND,
                   "no exec of this id in this sandbox");
}

// An exec that ended before it began.
class FailedExec final : public Exec {
 public:
  FailedExec(SpawnFailed why, std::string incarnation) : why_(std::move(why)) {
    incarnation_ = std::move(incarnation);
  }
  Task<absl::Status> Next(ExecBatch* batch, absl::Duration) override {
    *batch = {};
    if (told_) {
      batch->drained = true;
    } else {
      batch->exited = why_;
    }
    told_ = true;
    co_return absl::OkStatus();
  }
  void Skip(StreamId) override {}

 private:
  const SpawnFailed why_;
  bool told_ = false;
};

std::unique_ptr<Exec> ArgumentsTooLong(const Daemon& daemon) {
  return std::make_unique<FailedExec>(
      SpawnFailed{SpawnFailed::Kind::kArgumentsTooLong, "argument list too long"},
      daemon.incarnation);
}

// Whoever drops this without having handed on what it holds leaves that to the background: a
// command is killed, and what was made for one that does not run is removed. So no exit of Start()
// can lose them.
struct StartingCommand {
  SandboxHandle sandbox;
  std::unique_ptr<RemoteCommand> command;
  std::optional<ExecFolder> folder;
  bool kill = true;
  ExecPrepared prepared = {};
  bool never_arrived = false;
  bool handed_on = false;

  ~StartingCommand() {
    if (handed_on) return;
    const bool may_run = command != nullptr && !command->refused() && !never_arrived;
    if (!may_run && (prepared.folder || prepared.stdin)) {
      sandbox.background.Start("remove what a command would have needed",
                               [sandbox = sandbox.ForBackground(kKillLimit), folder = *folder,
                                uploaded = prepared.stdin]() -> Task<void> {
                                 co_await RemoveExecFolder(sandbox, folder, uploaded);
                               });
    }
    if (!may_run || !kill) return;
    sandbox.background.Start(
        "kill a command",
        [sandbox = sandbox.ForBackground(kKillLimit), folder = folder, uploaded = prepared.stdin,
         command = std::shared_ptr<RemoteCommand>(std::move(command))]() mutable -> Task<void> {
          co_await KillRemoteCommand(sandbox, std::move(command), folder, uploaded);
        });
  }
};

}  // namespace

Task<absl::StatusOr<std::unique_ptr<Exec>>> ExecClient::Start(CallContext context,
                                                              SandboxTarget target, ExecSpec spec,
                                                              absl::Duration heartbeat) {
  // What is remembered of a sandbox may be out of date (resumed elsewhere): once more, afresh.
  absl::Status failure;
  for (int attempt = 0; attempt < 2; ++attempt) {
    absl::StatusOr<SandboxHandle> sandbox =
        co_await FindSandbox(client_, background_, context, target);
    failure = sandbox.status();
    if (sandbox.ok()) {
      absl::StatusOr<std::unique_ptr<Exec>> exec =
          co_await StartOn(*std::move(sandbox), spec, heartbeat);
      if (exec.ok()) co_return exec;
      failure = exec.status();
    }
    const bool cancelled = co_await Cancelled();
    if (cancelled || !NeverArrived(failure)) break;
    client_.directory().Forget(target.sandbox_id);
  }
  co_return failure;
}

Task<absl::StatusOr<std::unique_ptr<Exec>>> ExecClient::StartOn(SandboxHandle sandbox,
                                                                ExecSpec spec,
                                                                absl::Duration heartbeat) {
  if (!sandbox.capabilities->own())
    co_return co_await StartStock(std::move(sandbox), std::move(spec));
  auto exec = std::make_unique<OwnExec>(sandbox, spec, heartbeat);
  absl::Status status = co_await exec->Begin();
  if (status.ok()) co_return std::unique_ptr<Exec>(std::move(exec));
  if (NeverArrived(status)) co_return status;
  co_return co_await client_.Explained(sandbox.context, sandbox.daemon, std::move(status));
}

Task<absl::StatusOr<std::unique_ptr<Exec>>> ExecClient::StartStock(SandboxHandle sandbox,
                                                                   ExecSpec spec) {
  const bool exact =
      !sandbox.capabilities->scratch.empty() && spec.fidelity != ExecFidelity::kLines;
  if (!exact && spec.fidelity == ExecFidelity::kBytes) {
    co_return Unsupported("exec.bytes",
                          "nothing in this sandbox is writable, so that output can only be had as "
                          "lines; ask for fidelity BEST or LINES");
  }
  if (!exact && !spec.stdin_bytes.empty()) {
    co_return Unsupported("exec.stdin", "input needs a writable directory in the sandbox");
  }
  CommandRequest request;
  if (spec.user.set()) {
    CO_ASSIGN_OR_RETURN(
        std::string passwd,
        co_await client_.ReadSmallFile(sandbox.context, sandbox.daemon, "/etc/passwd", kMaxPasswd));
    CO_ASSIGN_OR_RETURN(StockUser user, ResolveUser(spec.user, passwd));
    request.uid = user.uid;
    request.gid = user.gid;
    request.env = std::move(user.env);
  }
  for (auto& variable : spec.env) request.env.push_back(std::move(variable));
  request.timeout = spec.timeout;

  StartingCommand starting{sandbox, nullptr, std::nullopt, !spec.detach_on_disconnect};
  ExecId id{.route = ExecId::Route::kLines, .timeout = spec.timeout};
  bool upload_stdin = false;
  if (exact) {
    id.route = ExecId::Route::kFiles;
    id.nonce = RandomHex(16);
    starting.folder.emplace(sandbox.capabilities->scratch, id.nonce);
    if (!spec.user.set() && !sandbox.daemon->endpoint.through_server) {
      CO_RETURN_IF_ERROR(co_await MakeFolder(sandbox, starting.folder->path(), &starting.prepared));
    }
    upload_stdin = spec.stdin_bytes.size() > kMaxInlineStdinBytes;
    ExecPrepared prepared = starting.prepared;
    prepared.stdin = upload_stdin;
    request.command = RedirectScript(spec, *starting.folder, prepared);
  } else {
    request.command = PlainScript(spec);
  }
  if (request.command.size() > kMaxScriptBytes) co_return ArgumentsTooLong(*sandbox.daemon);
  if (upload_stdin) {
    starting.prepared.stdin = true;  // some of it, if the upload fails
    CO_RETURN_IF_ERROR(co_await UploadStdin(sandbox, starting.folder->uploaded_stdin(),
                                            std::move(spec.stdin_bytes)));
  }

  starting.command =
      std::make_unique<RemoteCommand>(client_, sandbox.context, sandbox.daemon, request);
  absl::Status status = co_await starting.command->AwaitId();
  starting.never_arrived = NeverArrived(status);
  if (starting.never_arrived) co_return status;
  if (!status.ok()) {
    co_return co_await client_.Explained(sandbox.context, sandbox.daemon, std::move(status));
  }
  id.command_id = starting.command->id();
  starting.handed_on = true;
  const auto on_drop = starting.kill ? FileExec::OnDrop::kKill : FileExec::OnDrop::kDetach;
  if (exact) {
    co_return std::make_unique<FileExec>(sandbox, std::move(starting.command), *starting.folder,
                                         std::move(id), on_drop, starting.prepared.stdin);
  }
  co_return std::make_unique<LineExec>(sandbox, std::move(starting.command), std::move(id),
                                       starting.kill);
}

// A daemon makes a folder in a tenth of the time that the command's shell needs to run mkdir. Left
// to the shell: a folder of another user, whom the daemon's API cannot give one; and one behind the
// server's proxy, where an exchange costs more than it saves.
Task<absl::Status> ExecClient::MakeFolder(SandboxHandle sandbox, std::string path,
                                          ExecPrepared* prepared) {
  constexpr unsigned kOwnersAlone = 0700;
  HttpRequest request =
      client_.Request(sandbox.context, *sandbox.daemon, "POST", "/directories", kSmallLimit);
  request.headers.Set("Content-Type", "application/json");
  request.body = MakeDirectoryJson(path, kOwnersAlone);
  request.resend = Resend::kAlways;  // twice is as once
  prepared->folder = true;           // perhaps, when this task is cancelled
  const absl::StatusOr<HttpResponse> response =
      co_await client_.Fetch(sandbox.context, sandbox.daemon, std::move(request), kMaxSmallBody);
  prepared->folder = response.ok() ? response->status == 200 : !NeverArrived(response.status());
  co_return response.status();
}

// World-readable, since the command may have another user; its name cannot be guessed, and the
// command's shell removes it as soon as it is open.
Task<absl::Status> ExecClient::UploadStdin(SandboxHandle sandbox, std::string path,
                                           std::string bytes) {
  constexpr int kReadableByAll = 0644;
  MultipartUpload upload(path, kReadableByAll);
  HttpRequest request =
      client_.Request(sandbox.context, *sandbox.daemon, "POST", "/files/upload", kUploadLimit);
  request.headers.Set("Content-Type", upload.content_type());
  request.body = upload.preamble() + bytes + upload.epilogue();
  CO_ASSIGN_OR_RETURN(
      HttpResponse response,
      co_await client_.Fetch(sandbox.context, sandbox.daemon, std::move(request), kMaxSmallBody));
  if (response.status == 200) co_return absl::OkStatus();
  co_return DaemonError(response, "take a command's input");
}

Task<absl::StatusOr<std::unique_ptr<Exec>>> ExecClient::Attach(
    CallContext context, SandboxTarget target, std::string exec_id, int64_t stdout_offset,
    int64_t stderr_offset, bool kill_on_drop, absl::Duration heartbeat) {
  CO_ASSIGN_OR_RETURN(ExecId id, ParseExecId(exec_id));
  CO_ASSIGN_OR_RETURN(
      SandboxHandle sandbox,
      co_await FindSandbox(client_, background_, std::move(context), std::move(target)));
  CO_RETURN_IF_ERROR(CheckRoute(id, *sandbox.capabilities));
  if (id.route == ExecId::Route::kOwn) {
    auto exec = std::make_unique<OwnExec>(sandbox, id, stdout_offset, stderr_offset, kill_on_drop,
                                          heartbeat);
    CO_RETURN_IF_ERROR(co_await exec->Begin());
    co_return std::unique_ptr<Exec>(std::move(exec));
  }
  if (id.route == ExecId::Route::kLines) {
    co_return Unsupported("exec.attach", "output of a command that was run as lines is not kept");
  }
  // Ask first: an id that the daemon does not know is an error, not an exec without output.
  CO_ASSIGN_OR_RETURN(
      CommandStatus status,
      co_await FetchCommandStatus(client_, sandbox.context, sandbox.daemon, id.command_id));
  (void)status;
  const ExecFolder folder(sandbox.capabilities->scratch, id.nonce);
  const auto on_drop = kill_on_drop ? FileExec::OnDrop::kKill : FileExec::OnDrop::kDetach;
  auto exec = std::make_unique<FileExec>(sandbox, folder, std::move(id), on_drop, stdout_offset,
                                         stderr_offset);
  CO_RETURN_IF_ERROR(co_await exec->CheckPlace());
  co_return std::unique_ptr<Exec>(std::move(exec));
}

Task<absl::StatusOr<ExecSignalResult>> ExecClient::Signal(CallContext context, SandboxTarget target,
                                                          std::string exec_id, int signal) {
  CO_ASSIGN_OR_RETURN(ExecId id, ParseExecId(exec_id));
  CO_ASSIGN_OR_RETURN(
      SandboxHandle sandbox,
      co_await FindSandbox(client_, background_, std::move(context), std::move(target)));
  CO_RETURN_IF_ERROR(CheckRoute(id, *sandbox.capabilities));
  if (id.route == ExecId::Route::kOwn) {
    co_return co_await SignalOwn(std::move(sandbox), std::move(id), signal);
  }
  co_return co_await SignalStock(std::move(sandbox), std::move(id), signal);
}

Task<absl::StatusOr<ExecSignalResult>> ExecClient::SignalOwn(SandboxHandle sandbox, ExecId id,
                                                             int signal) {
  HttpRequest request =
      client_.Request(sandbox.context, *sandbox.daemon, "POST",
                      "/v1/exec/" + QueryEscape(id.command_id) + "/signal", kSmallLimit);
  request.headers.Set("Content-Type", "application/json");
  request.body = "{\"signal\":" + std::to_string(signal) + ",\"to\":\"group\"}";
  request.resend = Resend::kNever;
  CO_ASSIGN_OR_RETURN(
      HttpResponse response,
      co_await client_.Fetch(sandbox.context, sandbox.daemon, std::move(request), kMaxSmallBody));
  if (response.status != 200) co_return ParseExecRefusal(response).status;
  co_return ExecSignalResult{.delivery_confirmed = true};
}

Task<absl::StatusOr<ExecSignalResult>> ExecClient::SignalStock(SandboxHandle sandbox, ExecId id,
                                                               int signal) {
  // The status keeps the signal from a foreign process that got the number meanwhile.
  CO_ASSIGN_OR_RETURN(
      CommandStatus status,
      co_await FetchCommandStatus(client_, sandbox.context, sandbox.daemon, id.command_id));
  if (!status.running) {
    co_return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "the command has ended");
  }
  if (id.route == ExecId::Route::kFiles) {
    const ExecFolder folder(sandbox.capabilities->scratch, id.nonce);
    CO_ASSIGN_OR_RETURN(int code, co_await RunScript(client_, sandbox.context, sandbox.daemon,
                                                     SignalScript(folder, signal), nullptr));
    if (code == 0) co_return ExecSignalResult{.delivery_confirmed = true};
    if (code == kSignalNoGroup) {
      co_return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "the command has ended");
    }
  }
  if (signal != kSigTerm && signal != kSigKill) {
    co_return Unsupported("exec.signal",
                          "this command can be sent SIGTERM or SIGKILL only: its process id is not "
                          "known");
  }
  CO_RETURN_IF_ERROR(
      co_await InterruptCommand(client_, sandbox.context, sandbox.daemon, id.command_id));
  co_return ExecSignalResult{.delivery_confirmed = true, .ended = true};
}

Task<absl::StatusOr<ExecInfo>> ExecClient::Get(CallContext context, SandboxTarget target,
                                               std::string exec_id) {
  CO_ASSIGN_OR_RETURN(ExecId id, ParseExecId(exec_id));
  CO_ASSIGN_OR_RETURN(
      SandboxHandle sandbox,
      co_await FindSandbox(client_, background_, std::move(context), std::move(target)));
  CO_RETURN_IF_ERROR(CheckRoute(id, *sandbox.capabilities));
  if (id.route == ExecId::Route::kOwn) {
    co_return co_await GetOwn(std::move(sandbox), std::move(id));
  }
  co_return co_await GetStock(std::move(sandbox), std::move(id));
}

Task<absl::StatusOr<ExecInfo>> ExecClient::GetOwn(SandboxHandle sandbox, ExecId id) {
  HttpRequest request = client_.Request(sandbox.context, *sandbox.daemon, "GET",
                                        "/v1/exec/" + QueryEscape(id.command_id), kSmallLimit);
  CO_ASSIGN_OR_RETURN(
      HttpResponse response,
      co_await client_.Fetch(sandbox.context, sandbox.daemon, std::move(request), kMaxSmallBody));
  if (response.status != 200) co_return ParseExecRefusal(response).status;
  CO_ASSIGN_OR_RETURN(ExecRecord record, ParseExecRecord(response.body));
  ExecInfo info{.running = record.running,
                .started_at = record.started_at,
                .finished_at = record.finished_at,
                .stdout_bytes = record.stdout_bytes,
                .stderr_bytes = record.stderr_bytes,
                .still_open = record.still_open};
  if (record.exited) info.outcome = record.exited->outcome;
  co_return info;
}

Task<absl::StatusOr<ExecInfo>> ExecClient::GetStock(SandboxHandle sandbox, ExecId id) {
  CO_ASSIGN_OR_RETURN(
      CommandStatus status,
      co_await FetchCommandStatus(client_, sandbox.context, sandbox.daemon, id.command_id));
  ExecInfo info{.running = status.running,
                .started_at = status.started_at,
                .finished_at = status.finished_at};
  if (id.route == ExecId::Route::kLines) info.fidelity = ExecFidelity::kLines;
  if (status.running) co_return info;
  Outcome outcome = OutcomeOfStatus(status);
  const absl::Duration ran_for = RanFor(status).value_or(absl::ZeroDuration());
  if (id.route == ExecId::Route::kFiles) {
    const ExecFolder folder(sandbox.capabilities->scratch, id.nonce);
    outcome = co_await ResolveOutcome(sandbox, folder, std::move(outcome), id.timeout, ran_for);
  } else if (const auto* signalled = std::get_if<Signalled>(&outcome)) {
    outcome = WithTimeout(*signalled, id.timeout, ran_for);
  }
  info.outcome = std::move(outcome);
  co_return info;
}

}  // namespace bridge
