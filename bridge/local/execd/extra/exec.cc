// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/clock.h"
#include "bridge/local/execd/uuid.h"

namespace bridge::local::execd::extra {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kLateBytes = 1 << 20;

void Wake(int fd) {
  const uint64_t one = 1;
  (void)!write(fd, &one, sizeof(one));
}

void CloseFd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

Exec::Exec(const ExecSpec& spec)
    : id_(spec.id.empty() ? RandomHex32() : spec.id),
      kill_on_disconnect_(spec.kill_on_disconnect),
      drain_(spec.drain),
      out_(spec.retain_bytes),
      err_(spec.retain_bytes) {}

Exec::~Exec() {
  for (int* fd : {&stdin_fd_, &stdout_fd_, &stderr_fd_, &driver_fd_}) CloseFd(*fd);
}

std::variant<std::shared_ptr<Exec>, Failure> Exec::Start(Processes& processes, Timer& timer,
                                                         const ExecSpec& spec,
                                                         const std::atomic<bool>& cancelled) {
  SpawnSpec spawn;
  spawn.cancelled = &cancelled;
  if (auto failure = ResolveExecSpec(spec, &spawn)) return *std::move(failure);
  const std::shared_ptr<Exec> exec(new Exec(spec));
  std::optional<ReadyThread> driver = ReadyThread::Make();
  if (!driver) return NoRoom();
  exec->driver_.emplace(*std::move(driver));
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
  exec->driver_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (exec->driver_fd_ < 0 || (spec.stdin_pipe && pipe2(in, O_CLOEXEC) != 0) ||
      pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    const int error = errno;
    for (int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) CloseFd(fd);
    return FromErrno("pipe", "", error);
  }
  // Else it could not open /dev/stdout by its name.
  for (const int fd : {in[0], out[1], err[1]}) {
    if (fd >= 0 && spawn.identity) (void)!fchown(fd, spawn.identity->uid, -1);
  }
  exec->stdin_fd_ = in[1];
  exec->stdout_fd_ = out[0];
  exec->stderr_fd_ = err[0];
  spawn.stdin_fd = in[0];
  spawn.stdout_fd = out[1];
  spawn.stderr_fd = err[1];
  exec->started_at_ = absl::Now();
  const auto spawned = processes.Spawn(spawn);
  for (int fd : {in[0], out[1], err[1]}) CloseFd(fd);
  if (!spawned.process) return SpawnFailed(spawn, spawned);
  exec->process_ = spawned.process;
  for (const int fd : {exec->stdin_fd_, exec->stdout_fd_, exec->stderr_fd_}) {
    if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  exec->has_stdin_ = spec.stdin_pipe;
  exec->stdin_closed_ = !spec.stdin_pipe;
  if (spec.input) {
    exec->input_ = *spec.input;
    exec->input_end_ = static_cast<int64_t>(spec.input->size());
  }
  spawned.process->OnExit([exec](int status) { exec->Ended(status); });
  if (spec.timeout != absl::InfiniteDuration()) {
    timer.After(spec.timeout, [weak = std::weak_ptr<Exec>(exec)] {
      const auto late = weak.lock();
      if (!late) return;
      // Under the lock: the end cannot be seen without its reason.
      const std::lock_guard lock(late->mu_);
      if (!late->status_ && late->process_->SignalGroup(SIGKILL)) late->timed_out_ = true;
    });
  }
  return exec;
}

// ---- the driver

void Exec::WakeDriver() const { Wake(driver_fd_); }

void Exec::Notify() {
  for (Reader* reader : readers_) Wake(reader->wake_fd_);
  changed_.notify_all();
}

void Exec::Ended(int status) {
  {
    const std::lock_guard lock(mu_);
    status_ = status;
    running_ = false;
    finished_at_ = absl::Now();
    Notify();
  }
  WakeDriver();
}

void Exec::Go() {
  {
    const std::lock_guard lock(mu_);
    if (stdin_fd_ >= 0) PushInput();  // also when there is nothing but its end
  }
  std::move(*driver_)
      .Run([self = shared_from_this()] {
        while (self->Step()) {
        }
      })
      .detach();
}

// The oldest byte that must not be forgotten: what a reader still needs. Without a reader
// everything may go, but not before the first one has come.
int64_t Exec::Keep(bool err) const {
  int64_t keep = err ? err_.end() : out_.end();
  for (const Reader* reader : readers_) keep = std::min(keep, err ? reader->err_ : reader->out_);
  return keep;
}

int64_t Exec::Room(bool err) const { return (err ? err_ : out_).Room(Keep(err)); }

// Does output wait in a pipe because a reader is slow?
bool Exec::Blocked() const {
  return (stdout_fd_ >= 0 && Room(false) <= 0) || (stderr_fd_ >= 0 && Room(true) <= 0);
}

// What came before the time was over but was not read yet. A descendant that goes on printing is
// not followed for ever.
bool Exec::TakeLate() {
  if (late_bytes_ >= kLateBytes) return false;
  bool some = false;
  if (stdout_fd_ >= 0 && Room(false) > 0) some |= ReadOutput(false);
  if (stderr_fd_ >= 0 && Room(true) > 0) some |= ReadOutput(true);
  return some;
}

absl::Duration Exec::CheckDrained() {
  if (!status_ || drained_) return absl::InfiniteDuration();
  if (Blocked()) {
    drain_from_ = absl::Now();
    return absl::InfiniteDuration();
  }
  if (stdout_fd_ >= 0 || stderr_fd_ >= 0) {
    const absl::Duration left = std::max(finished_at_, drain_from_) + drain_ - absl::Now();
    if (left > absl::ZeroDuration()) return left;
    if (TakeLate()) return absl::ZeroDuration();
  }
  drained_ = true;
  out_open_ = stdout_fd_ >= 0;
  err_open_ = stderr_fd_ >= 0;
  CloseInput();
  Notify();
  return absl::InfiniteDuration();
}

bool Exec::Step() {
  pollfd fds[4];
  absl::Duration wait;
  {
    const std::lock_guard lock(mu_);
    wait = CheckDrained();
    if (drained_ && stdout_fd_ < 0 && stderr_fd_ < 0) return false;
    fds[0] = {driver_fd_, POLLIN, 0};
    fds[1] = {drained_ || Room(false) > 0 ? stdout_fd_ : -1, POLLIN, 0};
    fds[2] = {drained_ || Room(true) > 0 ? stderr_fd_ : -1, POLLIN, 0};
    fds[3] = {stdin_fd_, static_cast<short>(input_.size() > input_used_ ? POLLOUT : 0), 0};
  }
  const bool forever = wait == absl::InfiniteDuration();
  poll(fds, 4,
       forever
           ? -1
           : static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(wait) + 1, 3'600'000)));
  if (fds[0].revents != 0) {
    uint64_t count;
    (void)!read(driver_fd_, &count, sizeof(count));
  }
  const std::lock_guard lock(mu_);
  if (fds[1].revents != 0) ReadOutput(false);
  if (fds[2].revents != 0) ReadOutput(true);
  if (stdin_fd_ >= 0 && fds[3].revents != 0) {
    PushInput();
    // The program has closed it, and there was nothing to write that would have shown it.
    if (stdin_fd_ >= 0 && (fds[3].revents & POLLERR) != 0 && input_.empty()) CloseInput();
  }
  return true;
}

bool Exec::ReadOutput(bool err) {
  int& fd = err ? stderr_fd_ : stdout_fd_;
  OutputRing& ring = err ? err_ : out_;
  const int64_t room = drained_ ? static_cast<int64_t>(kReadBytes) : Room(err);
  std::string buffer(static_cast<size_t>(std::min<int64_t>(kReadBytes, room)), '\0');
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (n <= 0) {
    CloseFd(fd);
    return false;
  }
  if (drained_) return false;  // nobody will ever ask for it
  if (status_ && absl::Now() > finished_at_ + drain_) late_bytes_ += static_cast<size_t>(n);
  ring.Append(std::string_view(buffer).substr(0, n));
  Notify();
  return true;
}

void Exec::CloseInput() {
  CloseFd(stdin_fd_);
  stdin_closed_ = true;
  input_.clear();
  input_used_ = 0;
  Notify();
}

void Exec::PushInput() {
  while (input_.size() > input_used_) {
    const ssize_t n = write(stdin_fd_, input_.data() + input_used_, input_.size() - input_used_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return CloseInput();  // the program has closed it
    input_used_ += static_cast<size_t>(n);
    taken_ += n;
    Notify();
  }
  input_.clear();
  input_used_ = 0;
  if (input_end_ && taken_ >= *input_end_) CloseInput();
}

}  // namespace bridge::local::execd::extra
