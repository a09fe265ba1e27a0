// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/spawner.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "bridge/base/c_strings.h"

namespace bridge::local::runtime {
namespace {

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() {
    posix_spawn_file_actions_destroy(&actions_);
    for (const int fd : copies_) close(fd);
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  // Sources are copied out of the way of all targets first.
  bool Add(const std::vector<std::pair<int, int>>& fds) {
    int top = 2;
    for (const auto& [from, to] : fds) top = std::max(top, to);
    std::vector<bool> given(static_cast<size_t>(top) + 1);
    for (const auto& [from, to] : fds) {
      const int copy = fcntl(from, F_DUPFD_CLOEXEC, top + 1);
      if (copy < 0) return false;
      copies_.push_back(copy);
      posix_spawn_file_actions_adddup2(&actions_, copy, to);
      given[static_cast<size_t>(to)] = true;
    }
    for (int fd = 0; fd <= top; ++fd) {
      if (given[static_cast<size_t>(fd)]) continue;
      if (fd <= STDERR_FILENO) {
        posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0);
      } else {
        posix_spawn_file_actions_addclose(&actions_, fd);
      }
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, top + 1);
    return true;
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
  std::vector<int> copies_;
};

absl::StatusOr<pid_t> SpawnHere(const SpawnRequest& request) {
  FileActions actions;
  if (!actions.Add(request.fds)) return absl::ResourceExhaustedError("no descriptor is left");
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  const std::vector<char*> argv = CStrings(request.argv);
  const std::vector<char*> env = CStrings(request.env);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, argv[0], actions.get(), &attributes, argv.data(), env.data());
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  const std::string text = request.argv[0] + ": " + std::strerror(error);
  if (error == E2BIG) return absl::ResourceExhaustedError(text);
  return absl::UnavailableError(text);
}

}  // namespace

Spawner::Spawner() : thread_([this] { Run(); }) {}

Spawner::~Spawner() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

absl::StatusOr<pid_t> Spawner::Spawn(SpawnRequest request) {
  Job job{std::move(request), {}};
  std::future<absl::StatusOr<pid_t>> result = job.result.get_future();
  {
    const std::lock_guard lock(mu_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_all();
  return result.get();
}

void Spawner::Run() {
  std::unique_lock lock(mu_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.result.set_value(SpawnHere(job.request));
    lock.lock();
  }
}

}  // namespace bridge::local::runtime
