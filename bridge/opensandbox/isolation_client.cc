// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/isolation_client.h"

#include <algorithm>

#include "bridge/base/error.h"
#include "bridge/base/random.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/exec_script.h"
#include "bridge/opensandbox/isolated_run.h"
#include "bridge/opensandbox/isolation_codec.h"
#include "bridge/opensandbox/isolation_script.h"
#include "bridge/opensandbox/remote_command.h"
#include "bridge/opensandbox/shared_result.h"
#include "bridge/opensandbox/user_directory.h"

namespace bridge {
namespace {

constexpr absl::Duration kSmallLimit = absl::Seconds(10);
// The daemon starts the session's shell before it answers, or kills it.
constexpr absl::Duration kSessionLimit = absl::Seconds(30);
constexpr size_t kMaxListBody = 4 << 20;
constexpr size_t kMaxPasswd = 1 << 20;

using Opened = SharedResult<absl::StatusOr<IsolatedSession>>;

absl::Status CancelledStatus() {
  return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
}

Task<absl::StatusOr<HttpResponse>> Ask(SandboxHandle sandbox, std::string method,
                                       std::string target, std::string body, absl::Duration limit) {
  HttpRequest request =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, method, target, limit);
  if (!body.empty()) {
    request.headers.Set("Content-Type", "application/json");
    request.body = std::move(body);
  }
  if (method == "POST") request.resend = Resend::kNever;
  co_return co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(request),
                                          kMaxListBody);
}

std::string SessionTarget(std::string_view id) { return "/v1/isolated/session/" + QueryEscape(id); }

Task<absl::StatusOr<bool>> CloseSession(SandboxHandle sandbox, std::string id) {
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await Ask(sandbox, "DELETE", SessionTarget(id), "", kSessionLimit));
  if (response.status / 100 == 2) co_return true;
  const absl::Status error = IsolationError(response, "close a session");
  if (ReasonOf(error) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) co_return false;
  co_return error;
}

absl::StatusOr<IsolatedSession> OpenedFrom(const absl::StatusOr<HttpResponse>& response) {
  if (!response.ok()) return response.status();
  if (response->status / 100 == 2) return ParseOpenedSession(response->body);
  return IsolationError(*response, "open a session");
}

// Whoever drops this while it holds a session closes it in the background.
struct NewSession {
  SandboxHandle sandbox;
  std::string id = {};

  ~NewSession() {
    if (id.empty()) return;
    sandbox.background.Start(
        "close an isolated session",
        [sandbox = sandbox.ForBackground(kSessionLimit), id = id]() -> Task<void> {
          (void)co_await CloseSession(sandbox, id);
        });
  }
};

// Runs a script in a session of which nobody else knows; its exit status.
Task<absl::StatusOr<int>> RunInNew(SandboxHandle sandbox, std::string id, std::string code) {
  const std::string mark = RunMark(RandomHex(16));
  IsolatedRun run(sandbox, std::move(id), mark, "echo " + mark + "\n" + code, kSmallLimit);
  CO_RETURN_IF_ERROR(co_await run.AwaitStart());
  ExecBatch batch;
  while (!batch.exited) CO_RETURN_IF_ERROR(co_await run.Next(&batch, kSmallLimit));
  if (const auto* exit = std::get_if<ExitCode>(&*batch.exited)) co_return exit->code;
  co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                      "the new session ended before it could be used");
}

Task<absl::StatusOr<IsolationInfo>> AskIsolation(SandboxHandle sandbox) {
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await Ask(sandbox, "GET", "/v1/isolated/capabilities", "", kSmallLimit));
  if (response.status == 200) co_return ParseIsolation(response.body);
  const absl::Status error = IsolationError(response, "tell what it can isolate");
  if (ReasonOf(error) != ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE) co_return error;
  IsolationInfo info;
  info.detail = std::string(error.message());
  co_return info;
}

// That the daemon cannot comes before what is wrong with a request. Only one that is to be refused
// is worth the question.
Task<absl::Status> RefusalOf(SandboxHandle sandbox, absl::Status why) {
  CO_ASSIGN_OR_RETURN(IsolationInfo info, co_await AskIsolation(sandbox));
  if (info.available) co_return why;
  co_return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                      "this sandbox's daemon cannot isolate sessions here",
                      {.metadata = {{"feature", "isolation"}}});
}

}  // namespace

Task<absl::StatusOr<IsolationInfo>> IsolationClient::Get(CallContext context,
                                                         SandboxTarget target) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox,
                      co_await FindSandbox(client_, background_, std::move(context), target));
  co_return co_await AskIsolation(sandbox);
}

// The daemon would make a missing workspace, and says of a missing bind only that it does not like
// it.
Task<absl::Status> IsolationClient::CheckPlaces(SandboxHandle sandbox,
                                                const IsolatedSessionSpec& spec) {
  std::vector<std::string> places = {spec.workspace_source};
  std::vector<std::string> fields = {
      spec.workspace_source == spec.workspace_path ? "workspace_path" : "workspace_source_path"};
  for (size_t i = 0; i < spec.extra_writable.size(); ++i) {
    places.push_back(spec.extra_writable[i]);
    fields.push_back("extra_writable[" + std::to_string(i) + "]");
  }
  for (size_t i = 0; i < spec.binds.size(); ++i) {
    places.push_back(spec.binds[i].source);
    fields.push_back("binds[" + std::to_string(i) + "].source");
  }
  const std::string script = MissingDirectoriesScript(places);
  if (script.size() > kMaxScriptBytes) {
    co_return InvalidField("binds", "too many or too long paths");
  }
  std::vector<std::string> missing;
  CO_RETURN_IF_ERROR(
      (co_await RunScript(client_, sandbox.context, sandbox.daemon, script, &missing)).status());
  for (size_t i = 0; i < places.size(); ++i) {
    if (std::find(missing.begin(), missing.end(), std::to_string(i)) == missing.end()) continue;
    co_return MakeError(ErrorReason::ERROR_REASON_PATH_NOT_FOUND,
                        fields[i] + ": no such directory in the sandbox",
                        {.metadata = {{"path_field", fields[i]}}});
  }
  co_return absl::OkStatus();
}

// The daemon gives a uid without a gid group 0.
Task<absl::Status> IsolationClient::FillGroup(SandboxHandle sandbox, IsolatedSessionSpec* spec) {
  if (!spec->user.uid || spec->user.gid) co_return absl::OkStatus();
  absl::StatusOr<std::string> passwd =
      co_await client_.ReadSmallFile(sandbox.context, sandbox.daemon, "/etc/passwd", kMaxPasswd);
  if (!passwd.ok() && ReasonOf(passwd.status()) != ErrorReason::ERROR_REASON_PATH_NOT_FOUND) {
    co_return passwd.status();
  }
  const auto account = FindAccount(passwd.ok() ? *passwd : "", *spec->user.uid);
  spec->user.gid = account ? account->gid : *spec->user.uid;
  co_return absl::OkStatus();
}

// The daemon makes the session whether or not its answer is waited for: so it always is.
Task<absl::StatusOr<IsolatedSession>> IsolationClient::Post(SandboxHandle sandbox,
                                                            std::string body) {
  auto opened = std::make_shared<Opened>();
  auto abandoned = std::make_shared<bool>(false);
  background_.Start("open an isolated session",
                    [sandbox = sandbox.ForBackground(kSessionLimit), body = std::move(body), opened,
                     abandoned]() -> Task<void> {
                      absl::StatusOr<IsolatedSession> session = OpenedFrom(co_await Ask(
                          sandbox, "POST", "/v1/isolated/session", body, kSessionLimit));
                      const std::string lost = *abandoned && session.ok() ? session->id : "";
                      const NewSession closes_it{sandbox, lost};
                      opened->Set(std::move(session));
                    });
  std::optional<absl::StatusOr<IsolatedSession>> result = co_await Opened::Wait(opened);
  if (result) co_return *std::move(result);
  *abandoned = true;
  co_return CancelledStatus();
}

Task<absl::StatusOr<IsolatedSession>> IsolationClient::Open(CallContext context,
                                                            SandboxTarget target,
                                                            IsolatedSessionSpec spec) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox,
                      co_await FindSandbox(client_, background_, std::move(context), target));
  const absl::Status places = co_await CheckPlaces(sandbox, spec);
  if (!places.ok()) co_return co_await RefusalOf(sandbox, places);
  CO_RETURN_IF_ERROR(co_await FillGroup(sandbox, &spec));
  CO_ASSIGN_OR_RETURN(IsolatedSession session, co_await Post(sandbox, OpenSessionJson(spec)));
  NewSession guard{sandbox, session.id};
  CO_ASSIGN_OR_RETURN(
      int code, co_await RunInNew(sandbox, session.id, EnterWorkspaceScript(spec.workspace_path)));
  if (code != 0) {
    co_return MakeError(ErrorReason::ERROR_REASON_PERMISSION_DENIED,
                        "the session's user may not enter its workspace",
                        {.metadata = {{"path_field", "workspace_path"}}});
  }
  guard.id.clear();
  session.workspace_path = spec.workspace_path;
  session.workspace_source = spec.workspace_source;
  session.uid = spec.user.uid;
  session.gid = spec.user.gid;
  co_return session;
}

Task<absl::StatusOr<std::vector<IsolatedSession>>> IsolationClient::List(
    CallContext context, SandboxTarget target, std::string workspace_source) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox,
                      co_await FindSandbox(client_, background_, std::move(context), target));
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await Ask(sandbox, "GET", "/v1/isolated/sessions", "", kSmallLimit));
  if (response.status == 404) {
    // True of one that has none, and of an early build that has no such list.
    co_return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                        "this sandbox's daemon does not list isolated sessions",
                        {.metadata = {{"feature", "isolation"}}});
  }
  if (response.status != 200) co_return IsolationError(response, "list its sessions");
  CO_ASSIGN_OR_RETURN(std::vector<IsolatedSession> all, ParseSessionList(response.body));
  std::vector<IsolatedSession> found;
  for (IsolatedSession& session : all) {
    if (!session.active) continue;
    CO_ASSIGN_OR_RETURN(HttpResponse state,
                        co_await Ask(sandbox, "GET", SessionTarget(session.id), "", kSmallLimit));
    if (state.status != 200) {
      const absl::Status error = IsolationError(state, "tell a session's state");
      // Closed since it was listed.
      if (ReasonOf(error) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) continue;
      co_return error;
    }
    CO_RETURN_IF_ERROR(ParseSessionState(state.body, &session));
    if (!session.active) continue;
    if (!workspace_source.empty()) {
      if (session.workspace_source.empty()) {
        co_return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                            "this sandbox's daemon does not tell its sessions' workspaces",
                            {.metadata = {{"feature", "isolation.workspaces"}}});
      }
      if (session.workspace_source != workspace_source) continue;
    }
    found.push_back(std::move(session));
  }
  co_return found;
}

Task<absl::StatusOr<std::unique_ptr<Exec>>> IsolationClient::Run(CallContext context,
                                                                 SandboxTarget target,
                                                                 std::string session_id,
                                                                 RunSpec spec) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox,
                      co_await FindSandbox(client_, background_, std::move(context), target));
  const std::string mark = RunMark(RandomHex(16));
  auto run =
      std::make_unique<IsolatedRun>(sandbox, std::move(session_id), mark,
                                    SessionScript(spec.script, spec.env, mark), spec.timeout);
  CO_RETURN_IF_ERROR(co_await run->AwaitStart());
  co_return run;
}

Task<absl::StatusOr<bool>> IsolationClient::Close(CallContext context, SandboxTarget target,
                                                  std::string session_id) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox,
                      co_await FindSandbox(client_, background_, std::move(context), target));
  co_return co_await CloseSession(sandbox, std::move(session_id));
}

}  // namespace bridge
