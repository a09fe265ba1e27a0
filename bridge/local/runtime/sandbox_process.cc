// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/sandbox_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "bridge/base/descriptor_limit.h"
#include "bridge/base/read_file.h"

namespace bridge::local::runtime {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(20);

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct Pipe {
  Fd read;
  Fd write;
};

bool MakePipe(Pipe* pipe) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  pipe->read = Fd(ends[0]);
  pipe->write = Fd(ends[1]);
  return true;
}

// A nameless file that holds `bytes`, to be read from its start.
Fd MemoryFile(const std::string& bytes) {
  Fd fd(memfd_create("local-opensandbox", MFD_CLOEXEC));
  if (!fd.ok()) return fd;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n <= 0) return Fd();
    done += static_cast<size_t>(n);
  }
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::string JoinNul(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) {
    out += item;
    out.push_back('\0');
  }
  return out;
}

// Everything that comes until the other end is closed, `stop` is seen, or the time is over.
std::string ReadUntil(int fd, char stop, absl::Time deadline) {
  std::string got;
  while (got.find(stop) == std::string::npos) {
    const absl::Duration left = deadline - absl::Now();
    pollfd p{fd, POLLIN, 0};
    const int ready = poll(&p, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    std::array<char, 4096> piece;
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n <= 0) break;
    got.append(piece.data(), static_cast<size_t>(n));
  }
  return got;
}

// bwrap's --info-fd: {"child-pid": 123, …}
pid_t ChildPid(const std::string& info) {
  const size_t at = info.find("\"child-pid\":");
  return at == std::string::npos ? 0 : static_cast<pid_t>(atol(info.c_str() + at + 12));
}

std::vector<std::string> CommandLine(const LaunchRequest& request, const Cgroup& cgroup) {
  const RootPlan& root = request.root;
  std::vector<std::string> argv;
  if (root.isolation == Isolation::kOverlay) {
    argv = {"unshare", "--mount", "--propagation", "private", "--"};
  }
  argv.push_back(root.bootstrap);
  argv.push_back("--descriptors=" + std::to_string(InheritedDescriptorLimit().rlim_cur));
  if (root.die_with_parent) argv.push_back("--parent=" + std::to_string(getpid()));
  if (root.isolation == Isolation::kNone) {
    for (const std::string& dir : cgroup.dirs()) argv.push_back("--cgroup=" + dir);
  }
  for (std::string& flag : LaunchFlags(root)) argv.push_back(std::move(flag));
  argv.emplace_back("--");
  if (root.isolation == Isolation::kNone) {
    argv.push_back(root.bootstrap);
  } else {
    argv.insert(argv.end(), {"bwrap", "--args", std::to_string(kArgsFd), "--", kSandboxBootstrap});
  }
  return argv;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// A child of ours that has ended must be collected; an adopted one belongs to another.
void Reap(pid_t pid) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) < 0 && errno == EINTR) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SandboxProcess>> SandboxProcess::Launch(Spawner& spawner,
                                                                       const CgroupRoots& roots,
                                                                       LaunchRequest request) {
  auto process = std::unique_ptr<SandboxProcess>(new SandboxProcess);
  process->dir_ = request.dir;
  const bool walled = request.root.isolation != Isolation::kNone;
  if (request.root.isolation == Isolation::kOverlay) {
    request.root.disk = request.dir + "/disk";
    mkdir(request.root.disk.c_str(), 0755);
  }
  const int append = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  // The log is also read, by the bootstrap when it grows too long.
  const std::string log_path = request.dir + "/log";
  const Fd log(open(log_path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const Fd status(open((request.dir + "/status").c_str(), append, 0600));
  Fd spec = MemoryFile(EncodeSpec(request.spec));
  Fd args = MemoryFile(JoinNul(walled ? BwrapArguments(request.root) : std::vector<std::string>{}));
  Pipe ready;
  Pipe info;
  Pipe go;
  if (!log.ok() || !status.ok() || !spec.ok() || !args.ok() || !MakePipe(&ready) ||
      !MakePipe(&info) || !MakePipe(&go)) {
    return absl::UnavailableError("cannot prepare the sandbox: " +
                                  std::string(std::strerror(errno)));
  }
  // Files that are memory must not use up what programs may have: the kernel would end the daemon
  // where a program is to see that the disk is full.
  CgroupLimits limits = request.limits;
  const int64_t files = MemoryOfFiles(request.root);
  if (limits.memory_bytes) {
    limits.memory_bytes = std::min(*limits.memory_bytes, INT64_MAX - files) + files;
  }
  process->cgroup_ = Cgroup::Create(roots, request.id, limits);
  SpawnRequest spawn;
  spawn.argv = CommandLine(request, process->cgroup_);
  spawn.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               std::string(kModeVariable) + "=" + kModeLaunch};
  spawn.fds = {
      {log.get(), STDOUT_FILENO},  {log.get(), STDERR_FILENO},    {spec.get(), kSpecFd},
      {status.get(), kStatusFd},   {ready.write.get(), kReadyFd}, {request.listen_fd, kListenFd},
      {info.write.get(), kInfoFd}, {args.get(), kArgsFd},         {go.read.get(), kBlockFd}};
  const absl::StatusOr<pid_t> pid = spawner.Spawn(std::move(spawn));
  ready.write.Close();
  info.write.Close();
  if (!pid.ok()) {
    process->CleanUp();
    return pid.status();
  }

  const absl::Time deadline = absl::Now() + kStartTimeout;
  const pid_t init = walled ? ChildPid(ReadUntil(info.read.get(), '}', deadline)) : *pid;
  // The keeper stays outside of the groups, so that it can collect what is killed there.
  const bool joined = !walled || (init > 0 && process->cgroup_.Join(init));
  if (joined) (void)!write(go.write.get(), "G", 1);
  go.write.Close();
  const bool running = joined && ReadUntil(ready.read.get(), 'R', deadline) == "R";
  std::optional<ProcessHandle> keeper = ProcessHandle::Open(*pid);
  std::optional<ProcessHandle> inner = ProcessHandle::Open(init);
  if (keeper) process->keeper_ = std::move(*keeper);
  if (inner) process->init_ = std::move(*inner);
  process->record_ = {request.root.isolation,
                      *pid,
                      process->keeper_.start_ticks(),
                      init,
                      process->init_.start_ticks(),
                      process->cgroup_.dirs(),
                      {}};
  if (running) return process;

  (void)process->Kill(absl::Seconds(5));
  Reap(*pid);
  process->CleanUp();
  const std::string why = FirstLine(ReadFile(log_path).value_or(""));
  return absl::UnavailableError(why.empty() ? "the sandbox did not start" : why);
}

std::unique_ptr<SandboxProcess> SandboxProcess::Adopt(const ProcessRecord& record,
                                                      const std::string& dir) {
  std::optional<ProcessHandle> keeper = ProcessHandle::Open(record.keeper, record.keeper_start);
  std::optional<ProcessHandle> init = ProcessHandle::Open(record.init, record.init_start);
  if (!keeper || !init || keeper->ended()) return nullptr;
  auto process = std::unique_ptr<SandboxProcess>(new SandboxProcess);
  process->record_ = record;
  process->dir_ = dir;
  process->keeper_ = std::move(*keeper);
  process->init_ = std::move(*init);
  process->cgroup_ = Cgroup::Adopt(record.cgroups);
  return process;
}

ExitStatus ReadExit(const std::string& dir) {
  ExitStatus status;
  if (ParseStatusLine(ReadFile(dir + "/status").value_or(""), &status)) return status;
  // The bootstrap itself was killed, by us or for want of memory.
  return {128 + SIGKILL, absl::ToUnixNanos(absl::Now())};
}

ExitStatus SandboxProcess::TakeExit() {
  Reap(record_.keeper);
  return ReadExit(dir_);
}

absl::Status SandboxProcess::Pause() {
  if (cgroup_.can_freeze()) {
    const absl::Status frozen = cgroup_.Freeze();
    if (!frozen.ok()) (void)cgroup_.Thaw();
    return frozen;
  }
  // The keeper of a walled sandbox does nothing that could be noticed.
  const bool walled = record_.isolation != Isolation::kNone;
  record_.stopped = StopDescendants(record_.keeper);
  if (!walled && keeper_.Signal(SIGSTOP)) record_.stopped.push_back(record_.keeper);
  return absl::OkStatus();
}

absl::Status SandboxProcess::Resume() {
  if (cgroup_.can_freeze()) return cgroup_.Thaw();
  ContinueProcesses(std::exchange(record_.stopped, {}));
  return absl::OkStatus();
}

absl::Status SandboxProcess::Kill(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  if (record_.isolation == Isolation::kNone) {
    KillUnwalled(deadline);
  } else {
    // The kernel kills everything else in a process namespace when its first process dies.
    init_.Signal(SIGKILL);
    cgroup_.Kill();
  }
  // A first process counts as ended only when all of its namespace have.
  if (init_.WaitEnd(deadline) && keeper_.WaitEnd(deadline)) return absl::OkStatus();
  return absl::DeadlineExceededError("its processes do not end");
}

void SandboxProcess::KillUnwalled(absl::Time deadline) {
  // The keeper collects what its killed children leave, so it must go last, and not be frozen.
  for (const ProcessStat& stat : Descendants(record_.keeper)) kill(stat.pid, SIGKILL);
  (void)Resume();
  while (!keeper_.ended() && absl::Now() < deadline) {
    const std::vector<ProcessStat> rest = Descendants(record_.keeper);
    if (rest.empty()) break;
    for (const ProcessStat& stat : rest) kill(stat.pid, SIGKILL);
    absl::SleepFor(absl::Microseconds(500));
  }
  keeper_.Signal(SIGKILL);
  cgroup_.Kill();
}

void SandboxProcess::CleanUp() { cgroup_.Remove(); }

void ReapRecord(const ProcessRecord& record, const std::string& id) {
  if (std::unique_ptr<SandboxProcess> process = SandboxProcess::Adopt(record, "")) {
    (void)process->Kill(absl::Seconds(5));
  }
  Cgroup cgroup = Cgroup::Adopt(record.cgroups);
  cgroup.Kill();
  if (record.isolation == Isolation::kNone) KillByEnvironment("OPENSANDBOX_ID=" + id);
  cgroup.Remove();
}

void ReapById(const CgroupRoots& roots, const std::string& id) {
  Cgroup cgroup = Cgroup::Adopt(Cgroup::DirsOf(roots, id));
  cgroup.Kill();
  KillByEnvironment("OPENSANDBOX_ID=" + id);
  cgroup.Remove();
}

absl::Status ProbeIsolation(Isolation isolation, const std::string& bootstrap,
                            const std::string& scratch_dir) {
  Spawner spawner;
  LaunchRequest request;
  request.id = "probe-" + std::to_string(getpid());
  request.dir = scratch_dir;
  request.root.isolation = isolation;
  request.root.bootstrap = bootstrap;
  request.root.execd = bootstrap;  // any program will do
  request.root.hostname = "probe";
  request.root.disk_bytes = 1 << 20;
  request.spec = {{"PATH=/usr/bin:/bin"}, {"true"}, {"true"}};
  const Fd placeholder(open("/dev/null", O_RDONLY | O_CLOEXEC));
  request.listen_fd = placeholder.get();
  absl::StatusOr<std::unique_ptr<SandboxProcess>> process =
      SandboxProcess::Launch(spawner, CgroupRoots::Find(), std::move(request));
  if (!process.ok()) return process.status();
  const absl::Status gone = (*process)->Kill(absl::Seconds(10));
  (*process)->TakeExit();
  (*process)->CleanUp();
  return gone;
}

}  // namespace bridge::local::runtime
