// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/file_watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "bridge/base/error.h"

namespace bridge {
namespace {
constexpr size_t kMaxBytes = 1 << 20;
}  // namespace

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, std::string_view flag) {
  const auto failed = [&] {
    return InvalidField(flag, "cannot read '" + path + "': " + std::strerror(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed();
  std::string content;
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0 && content.size() <= kMaxBytes) {
    content.append(buffer, static_cast<size_t>(n));
  }
  if (n < 0) {
    const absl::Status status = failed();
    ::close(fd);
    return status;
  }
  ::close(fd);
  if (content.size() > kMaxBytes) return InvalidField(flag, "'" + path + "' is over 1 MiB long");
  return content;
}

FileWatch::FileWatch(absl::Duration period, Report report)
    : period_(period), report_(std::move(report)) {}

FileWatch::~FileWatch() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void FileWatch::Add(std::string flag, std::string path, std::string content, Apply apply) {
  files_.push_back({std::move(flag), std::move(path), std::move(content), std::move(apply)});
}

void FileWatch::Start() {
  if (files_.empty()) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the main thread's business
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void FileWatch::Poke() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    poked_ = true;
  }
  changed_.notify_one();
}

void FileWatch::Run() {
  pthread_setname_np(pthread_self(), "file_watch");
  std::unique_lock<std::mutex> lock(mu_);
  while (!stop_) {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(period_), [this] { return stop_ || poked_; });
    if (stop_) return;
    poked_ = false;
    lock.unlock();
    for (File& file : files_) Look(file);
    lock.lock();
  }
}

void FileWatch::Look(File& file) {
  absl::StatusOr<std::string> content = ReadSecretFile(file.path, file.flag);
  if (content.ok() && *content == file.content) {
    file.failure.clear();
    return;
  }
  const absl::Status status = content.ok() ? file.apply(*content) : content.status();
  if (status.ok()) {
    file.content = *std::move(content);
    file.failure.clear();
    report_(file.flag, status);
  } else if (status.ToString() != file.failure) {
    file.failure = status.ToString();
    report_(file.flag, status);
  }
}

}  // namespace bridge
