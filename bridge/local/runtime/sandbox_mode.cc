// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/sandbox_mode.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/base/c_strings.h"
#include "bridge/local/runtime/bootstrap_protocol.h"
#include "bridge/local/runtime/line_stamper.h"

extern char** environ;

namespace bridge::local::runtime {
namespace {

constexpr off_t kMaxLogBytes = 8 << 20;

std::string ReadAll(int fd) {
  std::string all;
  std::array<char, 65536> piece;
  ssize_t n = 0;
  while ((n = read(fd, piece.data(), piece.size())) > 0) {
    all.append(piece.data(), static_cast<size_t>(n));
  }
  return all;
}

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

// The log, stamped line by line and bounded: past the limit its older half is dropped.
class Log {
 public:
  explicit Log(int fd) : fd_(fd) {}

  void Append(std::string_view bytes) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    WriteAll(fd_, stamper_.Stamp(bytes, now));
    struct stat s{};
    if (fstat(fd_, &s) == 0 && s.st_size > kMaxLogBytes) Halve(s.st_size);
  }
  void Finish() { WriteAll(fd_, stamper_.Finish()); }

 private:
  void Halve(off_t size) {
    std::string kept(static_cast<size_t>(size / 2), '\0');
    const ssize_t n = pread(fd_, kept.data(), kept.size(), size - static_cast<off_t>(kept.size()));
    if (n <= 0 || ftruncate(fd_, 0) != 0) return;
    kept.resize(static_cast<size_t>(n));
    const size_t line = kept.find('\n');
    WriteAll(fd_, std::string_view(kept).substr(line == std::string::npos ? 0 : line + 1));
  }

  const int fd_;
  LineStamper stamper_;
};

struct Child {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  int output = -1;   // becomes 1 and 2; -1 = as ours
  int keep_fd = -1;  // stays open
};

// Also those two that the C library keeps for itself, and that posix_spawn leaves ignored.
void ResetSignals() {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
  } action{};  // as the kernel has it: SIG_DFL
  for (int s = 1; s <= 64; ++s) syscall(SYS_rt_sigaction, s, &action, nullptr, sizeof(uint64_t));
}

[[noreturn]] void BecomeChild(const Child& child, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ResetSignals();
  // Without a process namespace nothing else ends this one if the bootstrap is killed.
  if (parent != 1) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it was killed before that
  }
  if (child.output >= 0) {
    dup2(child.output, STDOUT_FILENO);
    dup2(child.output, STDERR_FILENO);
  }
  if (child.keep_fd >= 0) fcntl(child.keep_fd, F_SETFD, 0);
  const std::vector<char*> env = CStrings(child.env);
  const std::vector<char*> argv = CStrings(child.argv);
  environ = const_cast<char**>(env.data());
  execvp(argv[0], argv.data());
  const int error = errno;
  if (error == E2BIG) {
    // Docker cannot start its first program then; here that would be this one.
    dprintf(STDERR_FILENO, "exec %s: argument list too long\n", kSandboxBootstrap);
    _exit(1);
  }
  dprintf(STDERR_FILENO, "%s: %s\n", argv[0], error == ENOENT ? "not found" : strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

pid_t Start(const Child& child) {
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid == 0) BecomeChild(child, self);
  return pid;
}

bool IsExecutable(const char* path) { return access(path, X_OK) == 0; }

// "-c" makes the rest shell text, as the real bootstrap script has it.
std::vector<std::string> EntrypointCommand(std::vector<std::string> entrypoint) {
  const std::string shell = IsExecutable("/bin/bash") ? "/bin/bash" : "/bin/sh";
  if (entrypoint.empty()) return {shell};
  if (entrypoint.front() == "-c") entrypoint.insert(entrypoint.begin(), shell);
  return entrypoint;
}

int ExitCode(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// Reaps everything and passes SIGTERM on until the entrypoint has ended. `output` is the read end
// of what both programs print, or -1.
int Supervise(pid_t entrypoint, int signals, int output, Log* log) {
  std::array<char, 65536> piece;
  while (true) {
    std::array<pollfd, 2> fds{pollfd{signals, POLLIN, 0}, pollfd{output, POLLIN, 0}};
    poll(fds.data(), output >= 0 ? 2 : 1, -1);
    if (output >= 0 && (fds[1].revents & POLLIN) != 0) {
      const ssize_t n = read(output, piece.data(), piece.size());
      if (n > 0) log->Append({piece.data(), static_cast<size_t>(n)});
    } else if (output >= 0 && fds[1].revents != 0) {
      output = -1;  // nobody can print any more
    }
    if ((fds[0].revents & POLLIN) == 0) continue;
    signalfd_siginfo info{};
    while (read(signals, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) kill(entrypoint, static_cast<int>(info.ssi_signo));
    }
    int status = 0;
    int code = -1;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid == entrypoint) code = ExitCode(status);
    }
    if (code < 0) continue;
    // What the entrypoint printed last is in the pipe already.
    while (output >= 0) {
      pollfd p{output, POLLIN, 0};
      if (poll(&p, 1, 0) <= 0 || (p.revents & POLLIN) == 0) break;
      const ssize_t n = read(output, piece.data(), piece.size());
      if (n <= 0) break;
      log->Append({piece.data(), static_cast<size_t>(n)});
    }
    return code;
  }
}

int WatchSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Without a process namespace nothing ends what the entrypoint leaves behind; as their reaper we
// see them all.
void KillDescendants() {
  const std::string path = "/proc/self/task/" + std::to_string(getpid()) + "/children";
  for (int round = 0; round < 100; ++round) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const std::string children = ReadAll(fd);
    close(fd);
    bool any = false;
    const char* at = children.c_str();
    char* end = nullptr;
    for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
      any = kill(static_cast<pid_t>(pid), SIGKILL) == 0 || any;
      at = end;
    }
    if (!any) return;
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }
}

void CloseOnExec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

}  // namespace

int RunSandboxMode() {
  for (int fd = kSpecFd; fd <= kBlockFd; ++fd) CloseOnExec(fd);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const BootstrapSpec spec = DecodeSpec(ReadAll(kSpecFd));
  close(kSpecFd);
  WriteAll(kReadyFd, "R");
  close(kReadyFd);

  const int signals = WatchSignals();
  std::array<int, 2> pipe_ends{-1, -1};
  if (signals < 0 || pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return 1;
  Log log(STDOUT_FILENO);
  log.Append("starting OpenSandbox Execd daemon at " + spec.execd.front() + ".\n");

  Start({spec.execd, spec.env, pipe_ends[1], kListenFd});
  close(kListenFd);  // so that a dead execd's port refuses connections
  const pid_t entrypoint = Start({EntrypointCommand(spec.entrypoint), spec.env, pipe_ends[1]});
  close(pipe_ends[1]);
  const int code = entrypoint < 0 ? 1 : Supervise(entrypoint, signals, pipe_ends[0], &log);
  log.Finish();

  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  WriteAll(kStatusFd, StatusLine({code, now.tv_sec * 1'000'000'000LL + now.tv_nsec}));
  if (getpid() != 1) KillDescendants();
  return code;
}

int RunContainerMode(int argc, char** argv) {
  const char* wanted = getenv("EXECD");
  const std::string execd = wanted != nullptr && *wanted != '\0' ? wanted : kSandboxExecd;
  if (getenv("EXECD_ENVS") == nullptr) setenv("EXECD_ENVS", "/opt/opensandbox/.env", 1);
  const int envs = open(getenv("EXECD_ENVS"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (envs >= 0) close(envs);
  std::vector<std::string> env;
  for (char** item = environ; *item != nullptr; ++item) env.emplace_back(*item);

  std::vector<std::string> entrypoint(argv + 1, argv + argc);
  const char* command = getenv("BOOTSTRAP_CMD");
  if (command != nullptr && *command != '\0') entrypoint = {"-c", command};

  const int signals = WatchSignals();
  if (signals < 0) return 1;
  printf("starting OpenSandbox Execd daemon at %s.\n", execd.c_str());
  fflush(stdout);
  Start({{execd}, env});
  const pid_t pid = Start({EntrypointCommand(entrypoint), env});
  return pid < 0 ? 1 : Supervise(pid, signals, -1, nullptr);
}

}  // namespace bridge::local::runtime
