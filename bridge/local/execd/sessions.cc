// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/sessions.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/time/clock.h"
#include "bridge/local/execd/event.h"
#include "bridge/local/execd/file_ops.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/line_splitter.h"
#include "bridge/local/execd/session_script.h"
#include "bridge/local/execd/spool.h"
#include "bridge/local/execd/uuid.h"

namespace bridge::local::execd {
namespace {

constexpr absl::Duration kPingInterval = absl::Seconds(3);
constexpr int64_t kDefaultTimeoutMs = 24 * 3'600'000;

int64_t NowMs() { return absl::ToUnixMillis(absl::Now()); }

ApiError Failed(std::string_view text) {
  return {500, kRuntimeError, "error running in session. " + std::string(text)};
}
ApiError Invalid(const std::string& text) { return {400, kInvalidBody, text}; }

}  // namespace

struct Sessions::Session {
  std::mutex mu;
  SessionState state;
  bool closed = false;
  std::set<std::shared_ptr<Process>> running;
};

struct Sessions::Request {
  std::string command;
  std::string cwd;  // absolute, or empty
  int64_t timeout_ms = 0;
};

// One run's shell with its files. They go when it does.
struct Sessions::Shell {
  std::shared_ptr<Process> process;
  int output = -1;  // where stdout and stderr arrive
  std::string script_path;
  std::string dump_path;
  std::shared_ptr<std::atomic<bool>> timed_out = std::make_shared<std::atomic<bool>>(false);

  ~Shell() {
    if (output >= 0) close(output);
    if (!script_path.empty()) unlink(script_path.c_str());
    if (!dump_path.empty()) unlink(dump_path.c_str());
  }
};

Sessions::Sessions(Processes& processes, Timer& timer, const Commands& commands, Habits habits)
    : processes_(processes), timer_(timer), commands_(commands), habits_(habits) {}

Sessions::~Sessions() = default;

std::optional<ApiError> Sessions::Create(std::string_view body, std::string* id) {
  const JsonParse parsed = ParseGoJson(body);
  JsonFields fields(parsed.value, "CreateSessionRequest", "model.CreateSessionRequest");
  std::string cwd;
  fields.String("cwd", &cwd);
  if (parsed.error != "EOF" && (!parsed.error.empty() || !fields.ok())) {
    return Invalid("error parsing request. " +
                   (parsed.error.empty() ? fields.error() : parsed.error));
  }
  auto session = std::make_shared<Session>();
  session->state.env = BaseEnvironment();
  if (!cwd.empty()) {
    std::string error;
    session->state.cwd = ResolvePath(cwd, &error);
    if (error.empty()) error = MakeAllDirectories(session->state.cwd);
    if (!error.empty()) {
      return ApiError{500, kRuntimeError, "error creating session. " + error};
    }
  }
  *id = RandomUuid();
  const std::lock_guard lock(mu_);
  sessions_[*id] = std::move(session);
  return std::nullopt;
}

std::shared_ptr<Sessions::Session> Sessions::Find(const std::string& id) const {
  const std::lock_guard lock(mu_);
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second;
}

bool Sessions::Close(const std::string& id) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(mu_);
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return false;
    session = it->second;
    sessions_.erase(it);
  }
  const std::lock_guard lock(session->mu);
  session->closed = true;
  for (const auto& process : session->running) process->SignalGroup(SIGKILL);
  return true;
}

std::optional<ApiError> Sessions::ParseRun(std::string_view body, Request* request) {
  const JsonParse parsed = ParseGoJson(body);
  JsonFields fields(parsed.value, "RunInSessionRequest", "model.RunInSessionRequest");
  std::string cwd;
  fields.String("command", &request->command);
  fields.String("cwd", &cwd);
  fields.Int64("timeout", &request->timeout_ms);
  if (!parsed.error.empty()) return Invalid("error parsing request. " + parsed.error);
  if (!fields.ok()) return Invalid("error parsing request. " + fields.error());
  const auto failure = [](const std::string& field, const std::string& tag) {
    return Invalid("invalid request. Key: 'RunInSessionRequest." + field +
                   "' Error:Field validation for '" + field + "' failed on the '" + tag + "' tag");
  };
  if (request->command.empty()) return failure("Command", "required");
  if (request->timeout_ms < 0) return failure("Timeout", "gte");
  std::string error;
  request->cwd = ResolveDirectory(cwd, &error);
  if (!error.empty()) return Invalid("invalid request. " + error);
  if (request->timeout_ms == 0) request->timeout_ms = kDefaultTimeoutMs;
  return std::nullopt;
}

std::optional<ApiError> Sessions::Run(const std::string& id, std::string_view body,
                                      EventStream& stream) {
  Request request;
  if (auto refusal = ParseRun(body, &request)) return refusal;
  const auto session = Find(id);
  if (!session) return Failed("context not found");
  const absl::Time begin = absl::Now();
  Shell shell;
  if (auto failure = Start(*session, request, &shell)) return failure;
  timer_.After(absl::Milliseconds(request.timeout_ms),
               [process = shell.process, timed_out = shell.timed_out] {
                 // Only the shell: its children may go on and hold the output open.
                 if (process->Signal(SIGKILL)) *timed_out = true;
               });
  stream.Send(TextEvent("init", id, NowMs()));
  stream.Send(PingEvent(NowMs()));
  const bool followed = Follow(shell, stream);
  if (!followed) shell.process->Signal(SIGKILL);
  const int status = *shell.process->Wait(absl::InfiniteDuration());
  {
    const std::lock_guard lock(session->mu);
    session->running.erase(shell.process);
    std::ifstream dump(shell.dump_path, std::ios::binary);
    std::ostringstream text;
    text << dump.rdbuf();
    if (auto state = ParseSessionDump(text.str())) session->state = std::move(*state);
  }
  if (!followed) return std::nullopt;
  if (*shell.timed_out) return Failed("timeout after " + GoDuration(request.timeout_ms));
  const int64_t ran = absl::ToInt64Milliseconds(absl::Now() - begin);
  if (status == 0) {
    stream.Send(CompleteEvent(ran, NowMs()));
  } else {
    const std::string code = WIFSIGNALED(status) ? "-1" : std::to_string(WEXITSTATUS(status));
    stream.Send(ErrorEvent(code, GoWaitStatus(status), NowMs()));
  }
  return std::nullopt;
}

std::optional<ApiError> Sessions::Start(Session& session, const Request& request, Shell* shell) {
  const std::string stem = SpoolDirectory(/*is_private=*/false) + "/execd_bash_" +
                           std::to_string(std::stoul(RandomHex32().substr(0, 8), nullptr, 16));
  shell->script_path = stem + ".sh";
  shell->dump_path = stem + ".env";
  {
    int error = 0;
    const auto script = SpoolFile::Create(shell->script_path, &error);
    if (!script) return Failed(GoPathError("open", shell->script_path, error));
    fchmod(script->fd(), 0600);
    const std::string text = SessionScript(request.command, shell->dump_path);
    if (write(script->fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return Failed(GoPathError("write", shell->script_path, ENOSPC));
    }
  }
  const char* path = getenv("PATH");
  const auto bash = LookPath("bash", path != nullptr ? path : "/usr/bin:/bin");
  if (!bash) return Failed("exec: \"bash\": executable file not found in $PATH");
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Failed(GoErrno(errno));
  shell->output = fds[0];
  SpawnSpec spec;
  spec.program = *bash;
  spec.argv = {"bash", "--noprofile", "--norc", shell->script_path};
  spec.stdout_fd = spec.stderr_fd = fds[1];
  spec.ignore_sigint = habits_.idle_children_ignore_sigint && !commands_.Busy();
  const std::lock_guard lock(session.mu);
  if (!request.cwd.empty()) session.state.cwd = request.cwd;
  spec.env = EnvList(session.state.env);
  spec.cwd = session.state.cwd;
  const auto spawned =
      session.closed ? Processes::SpawnResult{nullptr, ESRCH} : processes_.Spawn(spec);
  close(fds[1]);
  if (session.closed) return Failed("context not found");
  if (!spawned.process) return Failed(SpawnFailure(spec, spawned));
  shell->process = spawned.process;
  session.running.insert(spawned.process);
  return std::nullopt;
}

bool Sessions::Follow(Shell& shell, EventStream& stream) {
  SessionLineSplitter lines;
  bool listening = true;
  const LineSink sink = [&](std::string_view line) {
    if (!IsSessionMarker(line)) listening &= stream.Send(TextEvent("stdout", line, NowMs()));
  };
  absl::Time next_ping = absl::Now() + kPingInterval;
  std::string buffer(64 * 1024, '\0');
  while (listening) {
    const absl::Duration wait = std::max(next_ping - absl::Now(), absl::ZeroDuration());
    pollfd fds[2] = {{shell.output, POLLIN, 0}, {stream.client_fd(), POLLRDHUP, 0}};
    const int ready = poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (absl::Now() >= next_ping) {
      listening = stream.Send(PingEvent(NowMs()));
      next_ping = absl::Now() + kPingInterval;
    }
    if (ready <= 0) continue;
    if (fds[1].revents != 0) return false;
    const ssize_t n = read(shell.output, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      lines.Finish(sink);
      return listening;
    }
    lines.Feed(std::string_view(buffer).substr(0, n), sink);
  }
  return false;
}

}  // namespace bridge::local::execd
