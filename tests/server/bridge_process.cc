// SPDX-License-Identifier: Apache-2.0
#include "tests/server/bridge_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "bridge/base/c_strings.h"

namespace bridge::testing {

std::string BridgeProcess::Path() { return std::filesystem::absolute("bridge/sandbox_bridge"); }

BridgeProcess::BridgeProcess(Options options) {
  std::vector<std::string> words = options.wrapper;
  words.push_back(Path());
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  const std::vector<char*> argv = CStrings(words);
  const std::vector<char*> envp = CStrings(options.environment);

  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (posix_spawnp(&pid_, argv[0], &actions, &attributes, argv.data(), envp.data()) != 0) {
    pid_ = -1;
    ended_ = true;
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fds[1]);
  if (options.close_stderr) {
    ::close(pipe_fds[0]);
    log_ended_ = true;
  } else {
    reader_ = std::thread([this, fd = pipe_fds[0]] { ReadLog(fd); });
  }
}

BridgeProcess::~BridgeProcess() {
  if (!ended_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  if (reader_.joinable()) reader_.join();
}

void BridgeProcess::ReadLog(int fd) {
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0) {
    std::lock_guard<std::mutex> lock(mu_);
    log_.append(buffer, static_cast<size_t>(n));
    changed_.notify_all();
  }
  ::close(fd);
  std::lock_guard<std::mutex> lock(mu_);
  log_ended_ = true;
  changed_.notify_all();
}

bool BridgeProcess::WaitForLog(const std::string& text) {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait_for(lock, std::chrono::seconds(10),
                    [&] { return log_ended_ || log_.find(text) != std::string::npos; });
  return log_.find(text) != std::string::npos;
}

std::string BridgeProcess::WaitForWordAfter(const std::string& text) {
  std::unique_lock<std::mutex> lock(mu_);
  std::string word;
  changed_.wait_for(lock, std::chrono::seconds(10), [&] {
    const size_t at = log_.find(text);
    const size_t end = at == std::string::npos ? at : log_.find_first_of("\" \n", at + text.size());
    if (end == std::string::npos) return log_ended_;
    word = log_.substr(at + text.size(), end - at - text.size());
    return true;
  });
  return word;
}

std::string BridgeProcess::WaitForAddress() { return WaitForWordAfter("listening on "); }

int BridgeProcess::WaitForAdminPort() {
  const std::string address = WaitForWordAfter("admin server on ");
  return std::atoi(address.substr(address.rfind(':') + 1).c_str());
}

void BridgeProcess::Signal(int signal) const {
  if (!ended_) ::kill(pid_, signal);
}

std::optional<int> BridgeProcess::Wait(std::chrono::milliseconds bound) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!ended_) {
    if (::waitpid(pid_, &status_, WNOHANG) == pid_) {
      ended_ = true;
      break;
    }
    if (std::chrono::steady_clock::now() > end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (reader_.joinable()) reader_.join();
  return status_;
}

std::string BridgeProcess::log() const {
  std::lock_guard<std::mutex> lock(mu_);
  return log_;
}

}  // namespace bridge::testing
