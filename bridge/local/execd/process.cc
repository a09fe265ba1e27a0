// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/process.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>

#include "absl/time/clock.h"
#include "bridge/base/c_strings.h"
#include "bridge/base/descriptor_limit.h"
#include "bridge/local/execd/proc_tree.h"

namespace bridge::local::execd {
namespace {

using Step = Processes::SpawnResult::Step;

// The child borrows this program's memory until it runs its own (as with posix_spawn): to copy the
// address space of a daemon with a thousand threads takes longer than all the rest. A sanitizer
// wants to own each process's memory.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BRIDGE_COPY_MEMORY 1
#endif
#endif
#ifdef BRIDGE_COPY_MEMORY
constexpr int kCloneFlags = SIGCHLD;
#else
constexpr int kCloneFlags = CLONE_VM | CLONE_VFORK | SIGCHLD;
#endif
constexpr size_t kChildStack = 64 * 1024;

// What the child needs, laid out before: until it runs its program it may change nothing in memory
// but its stack, and only make system calls.
struct Prepared {
  const SpawnSpec* spec;
  std::vector<char*> argv;
  std::vector<char*> env;
  int dev_null = -1;
  int report_fd = -1;
  pid_t parent = 0;
  rlimit descriptors{};
  std::string oom_score;
};

struct Report {
  int step;
  int error;
};

// Where memory is short the kernel shall end what a client started and not this program, however
// small the one is beside the other: in thousandths of the memory that is short.
constexpr int kOomHandicap = 300;
constexpr char kOomScoreFile[] = "/proc/self/oom_score_adj";

std::string OomScoreOfChildren() {
  int own = 0;
  std::ifstream(kOomScoreFile) >> own;
  return std::to_string(std::min(own + kOomHandicap, 1000));
}

// To raise it everybody may. Where it is refused nonetheless the child is started all the same.
void TakeOomScore(const std::string& score) {
  const int fd = open(kOomScoreFile, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, score.data(), score.size());
  close(fd);
}

// Tells the parent and gives the status to end with.
int FailInChild(const Prepared& p, Step step) {
  const Report report = {static_cast<int>(step), errno};
  (void)!write(p.report_fd, &report, sizeof(report));
  return 127;
}

// By system call: the C library keeps two signals to itself, which may have been ignored before
// this program began.
void ResetSignals(bool ignore_sigint) {
  struct KernelAction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
  } action = {};
  for (int signal = 1; signal < 65; ++signal) {
    action.handler = signal == SIGINT && ignore_sigint ? SIG_IGN : SIG_DFL;
    syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof(action.mask));
  }
  const uint64_t none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof(none));
}

// By system call: the C library's versions would also try to change the other threads, which this
// copy of the process does not have.
bool AssumeIdentity(const Identity& identity) {
  return syscall(SYS_setgroups, identity.groups.size(), identity.groups.data()) == 0 &&
         syscall(SYS_setresgid, identity.gid, identity.gid, identity.gid) == 0 &&
         syscall(SYS_setresuid, identity.uid, identity.uid, identity.uid) == 0;
}

// What it returns is the child's exit status. It never leaves otherwise (_exit), which a sanitizer
// would take for the end of this thread, whose memory it shares.
int RunChild(void* prepared) {
  const Prepared& p = *static_cast<const Prepared*>(prepared);
  const SpawnSpec& spec = *p.spec;
  if (spec.controlling_terminal) {
    if (setsid() < 0) return FailInChild(p, Step::kTerminal);
  } else if (setpgid(0, 0) != 0) {
    return FailInChild(p, Step::kTerminal);
  }
  const int fds[3] = {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd};
  for (int target = 0; target < 3; ++target) {
    if (dup2(fds[target] >= 0 ? fds[target] : p.dev_null, target) < 0) {
      return FailInChild(p, Step::kTerminal);
    }
  }
  if (spec.controlling_terminal && ioctl(0, TIOCSCTTY, 0) != 0)
    return FailInChild(p, Step::kTerminal);
  ResetSignals(spec.ignore_sigint);
  TakeOomScore(p.oom_score);
  if (spec.identity && !AssumeIdentity(*spec.identity)) return FailInChild(p, Step::kIdentity);
  if (!spec.cwd.empty() && chdir(spec.cwd.c_str()) != 0) return FailInChild(p, Step::kDirectory);
  // After the identity: changing it clears this.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != p.parent) return 127;  // it died before that
  syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &p.descriptors, nullptr);
  syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
  execve(spec.program.c_str(), p.argv.data(), p.env.data());
  return FailInChild(p, Step::kExec);
}

}  // namespace

std::optional<int> Process::status() const {
  const std::lock_guard lock(mu_);
  return status_;
}

std::optional<int> Process::Wait(absl::Duration timeout) const {
  std::unique_lock lock(mu_);
  if (timeout == absl::InfiniteDuration()) {
    changed_.wait(lock, [this] { return status_.has_value(); });
  } else {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                      [this] { return status_.has_value(); });
  }
  return status_;
}

void Process::OnExit(std::function<void(int)> then) {
  int status = 0;
  {
    const std::lock_guard lock(mu_);
    if (!status_) {
      on_exit_.push_back(std::move(then));
      return;
    }
    status = *status_;
  }
  then(status);
}

// The lock is held over kill(): Reap() takes it before the pid is given back, so the number is
// ours.
bool Process::Signal(int signal) const {
  const std::lock_guard lock(mu_);
  return !reaped_ && kill(pid_, signal) == 0;
}

bool Process::SignalGroup(int signal) const {
  const std::lock_guard lock(mu_);
  return !reaped_ && kill(-pid_, signal) == 0;
}

void Process::Reap() {
  int status = 0;
  std::unique_lock lock(mu_);
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  // Listeners first, so that whoever sees the end sees what they made of it.
  while (!on_exit_.empty()) {
    std::vector<std::function<void(int)>> calls;
    calls.swap(on_exit_);
    lock.unlock();
    for (const auto& call : calls) call(status);
    lock.lock();
  }
  status_ = status;
  changed_.notify_all();
}

// Each caller waits for its own job: with one condition for all, each start would wake every
// waiting caller, and a daemon that fell behind would never catch up.
struct Processes::Job {
  const SpawnSpec* spec;
  SpawnResult result;
  bool done = false;
  std::condition_variable changed;
};

Processes::Processes()
    : child_stack_(new char[kChildStack]),
      oom_score_(OomScoreOfChildren()),
      spawner_([this] { SpawnLoop(); }),
      reaper_([this] { ReapLoop(); }) {}

Processes::~Processes() {
  KillAll(absl::Seconds(5));
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    work_.notify_all();
    changed_.notify_all();
  }
  reaper_.join();
  spawner_.join();
}

Processes::SpawnResult Processes::Spawn(const SpawnSpec& spec) {
  Job job{.spec = &spec};
  std::unique_lock lock(mu_);
  if (closed_) return {nullptr, ESHUTDOWN, Step::kFork};
  jobs_.push_back(&job);
  work_.notify_one();
  job.changed.wait(lock, [&] { return job.done; });
  return job.result;
}

void Processes::SpawnLoop() {
  std::unique_lock lock(mu_);
  while (true) {
    work_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job* job = jobs_.front();
    jobs_.pop_front();
    const std::atomic<bool>* cancelled = job->spec->cancelled;
    if (closed_) {
      job->result = {nullptr, ESHUTDOWN, Step::kFork};
    } else if (cancelled != nullptr && *cancelled) {
      job->result = {nullptr, ECANCELED, Step::kFork};
    } else {
      spawning_ = true;
      lock.unlock();
      job->result = DoSpawn(*job->spec);
      lock.lock();
      if (job->result.process) running_[job->result.process->pid()] = job->result.process;
      spawning_ = false;
    }
    ++spawns_;
    changed_.notify_all();
    job->done = true;
    job->changed.notify_one();
  }
}

Processes::SpawnResult Processes::DoSpawn(const SpawnSpec& spec) {
  Prepared p{&spec, CStrings(spec.argv), CStrings(spec.env)};
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return {nullptr, errno, Step::kFork};
  p.dev_null = open("/dev/null", O_RDWR | O_CLOEXEC);
  p.report_fd = report[1];
  p.parent = getpid();
  p.descriptors = InheritedDescriptorLimit();
  p.oom_score = oom_score_;
  // No handler of ours may run in the child.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const pid_t pid = clone(&RunChild, child_stack_.get() + kChildStack, kCloneFlags, &p);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  close(report[1]);
  if (p.dev_null >= 0) close(p.dev_null);
  SpawnResult result{nullptr, fork_error, Step::kFork};
  if (pid > 0) {
    Report failure;
    ssize_t n;
    do {
      n = read(report[0], &failure, sizeof(failure));
    } while (n < 0 && errno == EINTR);
    if (n == sizeof(failure)) {
      waitpid(pid, nullptr, 0);
      result = {nullptr, failure.error, static_cast<Step>(failure.step)};
    } else {
      result = {std::shared_ptr<Process>(new Process(pid)), 0, Step::kExec};
    }
  }
  close(report[0]);
  return result;
}

void Processes::ReapLoop() {
  while (true) {
    siginfo_t info = {};
    const int rc = waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
    if (rc != 0 && errno == EINTR) continue;
    std::shared_ptr<Process> process;
    {
      std::unique_lock lock(mu_);
      if (rc != 0) {  // no children
        changed_.wait(lock, [this] { return stopping_ || !running_.empty(); });
        if (running_.empty()) return;
        continue;
      }
      auto it = running_.find(info.si_pid);
      if (it == running_.end() && spawning_) {
        // Perhaps the child of the spawn in progress. After it, who is not in the table is a
        // stranger (or one whose exec failed, which DoSpawn has reaped by now).
        changed_.wait(lock, [this, before = spawns_] { return spawns_ != before; });
        it = running_.find(info.si_pid);
      }
      if (it != running_.end()) {
        process = it->second;
        running_.erase(it);
      }
    }
    if (!process) {
      waitpid(info.si_pid, nullptr, WNOHANG);
      continue;
    }
    process->Reap();
    const std::lock_guard lock(mu_);
    changed_.notify_all();
  }
}

void Processes::KillAll(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  {
    const std::lock_guard lock(mu_);
    closed_ = true;
  }
  while (true) {
    const std::vector<pid_t> below = DescendantsOf(getpid());
    for (const pid_t pid : below) kill(pid, SIGKILL);
    std::unique_lock lock(mu_);
    for (const auto& [pid, process] : running_) kill(-pid, SIGKILL);
    const bool empty = below.empty() && running_.empty() && !spawning_;
    if (empty || absl::Now() >= deadline) return;
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
}

}  // namespace bridge::local::execd
