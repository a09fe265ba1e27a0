// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/clock.h"
#include "bridge/local/execd/event.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/line_splitter.h"
#include "bridge/local/execd/spool.h"
#include "bridge/local/execd/uuid.h"

namespace bridge::local::execd {
namespace {

constexpr absl::Duration kTailInterval = absl::Milliseconds(100);
constexpr absl::Duration kPingInterval = absl::Seconds(3);
constexpr absl::Duration kInterruptPatience = absl::Seconds(3);
constexpr absl::Duration kInterruptPoll = absl::Milliseconds(50);
constexpr absl::Duration kRecordLife = absl::Hours(24);

int64_t NowMs() { return absl::ToUnixMillis(absl::Now()); }

std::string TimeText(absl::Time t) {
  const int64_t nanos = absl::ToUnixNanos(t);
  return GoTime(nanos / 1'000'000'000, nanos % 1'000'000'000);
}

// What a command's end is called in the stream: "3" and "exit status 3", "-1" and "signal: killed".
std::string EndEvent(int wait_status, absl::Duration ran) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
    return CompleteEvent(absl::ToInt64Milliseconds(ran), NowMs());
  }
  const std::string value =
      WIFSIGNALED(wait_status) ? "-1" : std::to_string(WEXITSTATUS(wait_status));
  return ErrorEvent(value, GoWaitStatus(wait_status), NowMs());
}

}  // namespace

// What is known of a command. The const members are set before others see it; mu guards the rest.
struct Commands::Record {
  std::string id;
  std::string content;
  bool background = false;
  std::string output_path;  // of a background command
  absl::Time started_at;
  absl::Time visible_at;  // status, logs and interrupt do not know it before
  std::shared_ptr<Process> process;

  mutable std::mutex mu;
  bool running = true;
  int exit_code = 0;
  std::string error;
  absl::Time finished_at;
};

// A foreground command while it runs; belongs to its thread.
struct Commands::Run {
  EventStream& stream;
  std::shared_ptr<Process> process;
  std::unique_ptr<SpoolFile> out;
  std::unique_ptr<SpoolFile> err;
  CommandLineSplitter out_lines;
  CommandLineSplitter err_lines;
  absl::Time last_ping;
  bool client_gone = false;

  void Send(const std::string& event) {
    if (!client_gone && !stream.Send(event)) client_gone = true;
  }
  void Tail(SpoolFile& file, CommandLineSplitter& lines, std::string_view type) {
    if (client_gone) return;
    const LineSink sink = [&](std::string_view line) { Send(TextEvent(type, line, NowMs())); };
    while (true) {
      const std::string_view bytes = file.ReadMore();
      if (bytes.empty() || client_gone) return;
      lines.Feed(bytes, sink);
    }
  }
  void TailBoth() {
    Tail(*err, err_lines, "stderr");
    Tail(*out, out_lines, "stdout");
  }
  void FinishLines() {
    err_lines.Finish([&](std::string_view line) { Send(TextEvent("stderr", line, NowMs())); });
    out_lines.Finish([&](std::string_view line) { Send(TextEvent("stdout", line, NowMs())); });
  }
};

Commands::Commands(Processes& processes, Timer& timer, Habits habits)
    : processes_(processes), timer_(timer), habits_(habits) {}

Commands::~Commands() = default;

std::optional<ApiError> Commands::RunForeground(const RunRequest& request, EventStream& stream,
                                                bool linger) {
  const std::string id = RandomHex32();
  const std::string directory = SpoolDirectory(habits_.private_spool);
  Run run{stream, nullptr, nullptr, nullptr, {}, {}};
  int error = 0;
  run.out = SpoolFile::Create(directory + "/" + id + ".stdout", &error);
  if (run.out) run.err = SpoolFile::Create(directory + "/" + id + ".stderr", &error);
  if (!run.err) {
    return ApiError{500, kRuntimeError,
                    "error running commands failed to get stdlog descriptor: " +
                        GoPathError("open", directory + "/" + id + ".stdout", error)};
  }
  busy_->fetch_add(1);
  std::string failure;
  SpawnSpec spec = MakeSpawnSpec(request, &failure);
  spec.stdout_fd = run.out->fd();
  spec.stderr_fd = run.err->fd();
  auto record = std::make_shared<Record>();
  record->id = id;
  record->content = request.Content();
  record->started_at = record->visible_at = absl::Now();
  if (failure.empty()) {
    const auto spawned = processes_.Spawn(spec);
    if (!spawned.process) failure = SpawnFailure(spec, spawned);
    run.process = record->process = spawned.process;
  }
  if (run.process) {
    Insert(record);
    run.process->OnExit([record](int status) { Finish(*record, status); });
    if (request.timeout_ms > 0) {
      timer_.After(absl::Milliseconds(request.timeout_ms),
                   [process = run.process] { process->SignalGroup(SIGKILL); });
    }
  }
  run.Send(TextEvent("init", id, NowMs()));
  run.Send(PingEvent(NowMs()));
  run.last_ping = absl::Now();
  if (!failure.empty()) {
    run.Send(ErrorEvent(failure, failure, NowMs()));
  } else {
    FollowOutput(run);
    run.Send(EndEvent(*run.process->status(), record->finished_at - record->started_at));
  }
  busy_->fetch_sub(1);
  if (habits_.private_spool) {
    run.out->Remove();
    run.err->Remove();
  }
  if (linger && !run.client_gone) Linger(stream, run.last_ping);
  return std::nullopt;
}

// Until the process has ended and all of its output is sent.
void Commands::FollowOutput(Run& run) {
  absl::Time next_tail = absl::Now() + kTailInterval;
  while (true) {
    const absl::Time next = std::min(next_tail, run.last_ping + kPingInterval);
    const bool ended =
        run.process->Wait(std::max(next - absl::Now(), absl::ZeroDuration())).has_value();
    const absl::Time now = absl::Now();
    if (ended || now >= next_tail) {
      run.TailBoth();
      next_tail = now + kTailInterval;
    }
    if (ended) break;
    if (now >= run.last_ping + kPingInterval) {
      run.Send(PingEvent(NowMs()));
      run.last_ping = now;
    }
  }
  run.FinishLines();
}

std::optional<ApiError> Commands::RunBackground(const RunRequest& request, EventStream& stream) {
  const std::string id = RandomHex32();
  auto record = std::make_shared<Record>();
  record->id = id;
  record->content = request.Content();
  record->background = true;
  record->output_path = SpoolDirectory(habits_.private_spool) + "/" + id + ".output";
  int error = 0;
  const auto output = SpoolFile::Create(record->output_path, &error);
  if (!output) {
    return ApiError{500, kRuntimeError,
                    "error running commands failed to get combined output descriptor: " +
                        GoPathError("open", record->output_path, error)};
  }
  bool connected = stream.Send(TextEvent("init", id, NowMs())) && stream.Send(PingEvent(NowMs()));
  const absl::Time init_sent = absl::Now();
  record->started_at = init_sent;
  record->visible_at = init_sent + habits_.background_race;
  std::string failure;
  SpawnSpec spec = MakeSpawnSpec(request, &failure);
  spec.stdout_fd = spec.stderr_fd = output->fd();
  if (failure.empty()) {
    const auto spawned = processes_.Spawn(spec);
    if (!spawned.process) failure = SpawnFailure(spec, spawned);
    record->process = spawned.process;
  }
  if (!failure.empty()) {
    record->running = false;
    record->exit_code = 255;
    record->error = failure;
    record->finished_at = absl::Now();
    record->visible_at = init_sent;
    Insert(record);
    stream.Send(
        ErrorBody(kRuntimeError, "error running commands failed to start commands: " + failure));
    return std::nullopt;
  }
  Insert(record);
  busy_->fetch_add(1);
  record->process->OnExit([record, busy = busy_](int status) {
    Finish(*record, status);
    busy->fetch_sub(1);
  });
  if (request.timeout_ms > 0) {
    timer_.After(absl::Milliseconds(request.timeout_ms),
                 [process = record->process] { process->SignalGroup(SIGKILL); });
  }
  connected = connected && stream.Send(CompleteEvent(
                               absl::ToInt64Milliseconds(absl::Now() - init_sent), NowMs()));
  if (connected) Linger(stream, init_sent);
  return std::nullopt;
}

void Commands::Linger(EventStream& stream, absl::Time last_ping) {
  const absl::Time end = absl::Now() + habits_.linger;
  for (absl::Time now = absl::Now(); now < end; now = absl::Now()) {
    const absl::Time next_ping = last_ping + kPingInterval;
    if (!stream.Sleep(std::min(end, next_ping) - now)) return;
    if (absl::Now() >= next_ping) {
      if (!stream.Send(PingEvent(NowMs()))) return;
      last_ping = absl::Now();
    }
  }
}

void Commands::Insert(std::shared_ptr<Record> record) {
  if (habits_.private_spool) ForgetOld();
  const std::lock_guard lock(mu_);
  const std::string id = record->id;
  records_[id] = std::move(record);
}

void Commands::ForgetOld() {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mu_);
  for (auto it = records_.begin(); it != records_.end();) {
    const std::shared_ptr<Record> record = it->second;  // must not go while its lock is held
    const std::lock_guard record_lock(record->mu);
    if (record->running || now - record->finished_at < kRecordLife) {
      ++it;
      continue;
    }
    if (!record->output_path.empty()) unlink(record->output_path.c_str());
    it = records_.erase(it);
  }
}

std::shared_ptr<Commands::Record> Commands::Find(const std::string& id) const {
  const std::lock_guard lock(mu_);
  const auto it = records_.find(id);
  if (it == records_.end() || absl::Now() < it->second->visible_at) return nullptr;
  return it->second;
}

void Commands::Finish(Record& record, int wait_status) {
  const std::lock_guard lock(record.mu);
  record.running = false;
  record.finished_at = absl::Now();
  record.exit_code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
  record.error = GoWaitStatus(wait_status);
}

std::optional<ApiError> Commands::Status(const std::string& id, std::string* json) const {
  const auto record = Find(id);
  if (!record) return ApiError{404, kInvalidBody, "command not found: " + id};
  const std::lock_guard lock(record->mu);
  std::string out = "{\"id\":";
  AppendGoJsonString(out, record->id);
  if (!record->content.empty()) {
    out += ",\"content\":";
    AppendGoJsonString(out, record->content);
  }
  out += record->running ? ",\"running\":true" : ",\"running\":false";
  if (!record->running) out += ",\"exit_code\":" + std::to_string(record->exit_code);
  if (!record->error.empty()) {
    out += ",\"error\":";
    AppendGoJsonString(out, record->error);
  }
  out += ",\"started_at\":\"" + TimeText(record->started_at) + "\"";
  if (!record->running) out += ",\"finished_at\":\"" + TimeText(record->finished_at) + "\"";
  *json = out + "}";
  return std::nullopt;
}

std::optional<ApiError> Commands::OpenLogs(const std::string& id, int64_t cursor,
                                           Logs* logs) const {
  const auto record = Find(id);
  if (!record) return ApiError{400, kInvalidBody, "command not found: " + id};
  if (!record->background) {
    return ApiError{400, kInvalidBody, "command " + id + " is not running in background"};
  }
  const std::string& path = record->output_path;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return ApiError{400, kInvalidBody,
                    "error open combined output file for command " + id + ": " +
                        GoPathError("open", path, errno)};
  }
  struct stat info = {};
  if (cursor < 0) {
    close(fd);
    return ApiError{400, kInvalidBody, "error seek file: " + GoPathError("seek", path, EINVAL)};
  }
  fstat(fd, &info);
  *logs = {fd, cursor, std::max<int64_t>(cursor, info.st_size)};
  return std::nullopt;
}

std::optional<ApiError> Commands::Interrupt(const std::string& id) {
  constexpr std::string_view kPrefix = "error interruptting code context. ";
  const auto record = Find(id);
  if (!record) return ApiError{500, kRuntimeError, std::string(kPrefix) + "no such session"};
  bool running = false;
  {
    const std::lock_guard lock(record->mu);
    running = record->running;
  }
  if (!running || !record->process) {
    return ApiError{500, kRuntimeError,
                    std::string(kPrefix) + "command session " + id + " is not running"};
  }
  record->process->SignalGroup(SIGTERM);
  const absl::Time end = absl::Now() + kInterruptPatience;
  while (absl::Now() < end) {
    // Looked at in steps, as the real daemon does: an answer takes 50 ms at least.
    absl::SleepFor(kInterruptPoll);
    if (record->process->status()) return std::nullopt;
  }
  record->process->SignalGroup(SIGKILL);
  record->process->Wait(kInterruptPoll);
  return std::nullopt;
}

}  // namespace bridge::local::execd
