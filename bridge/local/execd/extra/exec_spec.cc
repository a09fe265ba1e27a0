// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/exec_spec.h"

#include <cerrno>

#include "absl/strings/escaping.h"
#include "bridge/local/execd/environment.h"
#include "bridge/local/execd/extra/request.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/users.h"

namespace bridge::local::execd::extra {
namespace {

constexpr size_t kMaxInputBytes = 8 << 20;
constexpr int64_t kMaxTimeoutMs = int64_t{366} * 24 * 3'600'000;

Failure Spawn(std::string_view kind, std::string message, int error, std::string_view field) {
  Failure failure{422, "SPAWN_FAILED", std::move(message), error, std::string(field)};
  failure.With("kind", "\"" + std::string(kind) + "\"");
  return failure;
}

void ReadInput(StrictObject& object, ExecSpec* out) {
  std::optional<std::string> stdin_kind, encoded;
  object.String("stdin", &stdin_kind);
  object.String("stdin_b64", &encoded);
  if (stdin_kind) {
    if (*stdin_kind != "null" && *stdin_kind != "pipe") {
      object.Fail("stdin", "must be \"null\" or \"pipe\"");
    }
    out->stdin_pipe = *stdin_kind == "pipe";
  }
  if (!encoded) return;
  if (stdin_kind == "null") object.Fail("stdin_b64", "contradicts stdin");
  std::string bytes;
  if (!absl::Base64Unescape(*encoded, &bytes)) {
    object.Fail("stdin_b64", "is not base64");
  } else if (bytes.size() > kMaxInputBytes) {
    object.Fail("stdin_b64", "is longer than 8 MiB");
  }
  out->stdin_pipe = true;
  out->input = std::move(bytes);
}

void ReadId(StrictObject& object, ExecSpec* out) {
  std::optional<std::string> id;
  object.String("exec_id", &id);
  if (!id) return;
  out->id = *std::move(id);
  if (!IsExecId(out->id)) object.Fail("exec_id", "must be 32 lower-case hex digits");
}

void ReadUser(StrictObject& object, ExecSpec* out) {
  std::optional<int64_t> uid, gid;
  object.String("user", &out->user);
  object.Integer("uid", 0, UINT32_MAX - 1, &uid);
  object.Integer("gid", 0, UINT32_MAX - 1, &gid);
  if (out->user && (uid || gid)) object.Fail("user", "excludes uid and gid");
  if (gid && !uid) object.Fail("gid", "needs uid");
  if (uid) out->uid = static_cast<uint32_t>(*uid);
  if (gid) out->gid = static_cast<uint32_t>(*gid);
}

void ReadTimes(StrictObject& object, ExecSpec* out) {
  std::optional<int64_t> timeout, drain, heartbeat, retain;
  object.Integer("timeout_ms", 1, kMaxTimeoutMs, &timeout);
  object.Integer("drain_ms", 0, kMaxTimeoutMs, &drain);
  object.Integer("heartbeat_ms", 100, 3'600'000, &heartbeat);
  object.Integer("retain_bytes", 64 << 10, 1 << 30, &retain);
  if (timeout) out->timeout = absl::Milliseconds(*timeout);
  if (drain) out->drain = absl::Milliseconds(*drain);
  if (heartbeat) out->heartbeat = absl::Milliseconds(*heartbeat);
  if (retain) out->retain_bytes = *retain;
}

void CheckCommand(StrictObject& object, const ExecSpec& spec) {
  if (spec.argv.empty() != spec.shell.has_value()) {
    object.Fail("argv", "or shell, exactly one of them, is required");
  }
  if (!spec.argv.empty() && spec.argv[0].empty()) object.Fail("argv", "begins with an empty name");
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || name.find('=') != std::string::npos) {
      object.Fail("env", "has a name that is empty or holds \"=\"");
    }
  }
  if (!spec.cwd.empty() && spec.cwd[0] != '/') object.Fail("cwd", "must be absolute");
}

}  // namespace

bool IsExecId(std::string_view id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == id.npos;
}

std::optional<Failure> ParseExecSpec(std::string_view body, ExecSpec* out) {
  StrictObject object(body);
  object.StringList("argv", &out->argv);
  object.String("shell", &out->shell);
  object.StringMap("env", &out->env);
  object.Bool("clear_env", &out->clear_env);
  std::optional<std::string> cwd, on_disconnect;
  object.String("cwd", &cwd);
  if (cwd) {
    out->cwd = *cwd;
    if (cwd->empty()) object.Fail("cwd", "must be absolute");
  }
  object.String("on_disconnect", &on_disconnect);
  if (on_disconnect) {
    if (*on_disconnect != "kill" && *on_disconnect != "detach") {
      object.Fail("on_disconnect", "must be \"kill\" or \"detach\"");
    }
    out->kill_on_disconnect = *on_disconnect == "kill";
  }
  object.Bool("stream", &out->stream);
  if (!out->stream && out->kill_on_disconnect) {
    object.Fail("stream", "may be false only with on_disconnect \"detach\"");
  }
  ReadId(object, out);
  ReadUser(object, out);
  ReadInput(object, out);
  ReadTimes(object, out);
  CheckCommand(object, *out);
  return object.Finish();
}

std::optional<Failure> ResolveExecSpec(const ExecSpec& spec, SpawnSpec* out) {
  EnvMap env = spec.clear_env ? EnvMap() : BaseEnvironment();
  if (spec.user || spec.uid) {
    const UserDatabase users = UserDatabase::Read();
    const User* account = spec.user ? users.FindUser(*spec.user) : users.FindUser(*spec.uid);
    if (spec.user && account == nullptr) {
      return Spawn("BAD_USER", "there is no account \"" + *spec.user + "\"", 0, "user");
    }
    Identity identity;
    identity.uid = spec.user ? account->uid : *spec.uid;
    identity.gid = spec.gid ? *spec.gid : account != nullptr ? account->gid : identity.uid;
    if (account != nullptr) identity.groups = users.GroupsOf(*account);
    out->identity = identity;
    if (spec.user) {
      env["HOME"] = account->home;
      env["USER"] = env["LOGNAME"] = account->name;
    }
  }
  for (const auto& [name, value] : spec.env) env[name] = value;
  out->env = EnvList(env);
  out->cwd = spec.cwd;
  if (spec.shell) {
    const Shell shell = FindShell();
    out->program = shell.path;
    out->argv = {shell.name, "-c", *spec.shell};
    return std::nullopt;
  }
  const auto path = env.find("PATH");
  const auto program =
      LookPath(spec.argv[0], path == env.end() ? "/usr/bin:/bin" : std::string_view(path->second));
  if (!program) {
    return Spawn("NOT_FOUND", GoQuote(spec.argv[0]) + " is in no directory of PATH", ENOENT,
                 "argv");
  }
  out->program = *program;
  out->argv = spec.argv;
  return std::nullopt;
}

Failure NoRoom() {
  return {429, "TOO_MANY", "the sandbox has no room for another process or thread", EAGAIN};
}

Failure SpawnFailed(const SpawnSpec& spec, const Processes::SpawnResult& result) {
  using Step = Processes::SpawnResult::Step;
  switch (result.step) {
    case Step::kDirectory:
      return Spawn("BAD_CWD", GoPathError("chdir", spec.cwd, result.error), result.error, "cwd");
    case Step::kIdentity:
      return Spawn("BAD_USER", "the user cannot be assumed: " + GoErrno(result.error), result.error,
                   "user");
    case Step::kExec:
      break;
    case Step::kFork:
    case Step::kTerminal:
      if (result.error == EAGAIN || result.error == ENOMEM) return NoRoom();
      return Spawn("OTHER", "no process can be made: " + GoErrno(result.error), result.error, "");
  }
  const char* kind = "OTHER";
  switch (result.error) {
    case ENOENT:
    case ENOTDIR:
      kind = "NOT_FOUND";
      break;
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case ETXTBSY:
      kind = "NOT_EXECUTABLE";
      break;
    case E2BIG:
      kind = "ARGUMENTS_TOO_LONG";
      break;
    default:
      break;
  }
  return Spawn(kind, GoPathError("exec", spec.program, result.error), result.error, "argv");
}

}  // namespace bridge::local::execd::extra
