// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace bridge::local::lifecycle {

Watcher::Watcher()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{EPOLLIN, {.fd = stop_}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, stop_, &event);
  thread_ = std::thread([this] { Run(); });
}

Watcher::~Watcher() {
  eventfd_write(stop_, 1);
  thread_.join();
  close(epoll_);
  close(stop_);
}

void Watcher::Watch(int fd, std::function<void()> on_ready) {
  const std::lock_guard lock(mu_);
  watched_[fd] = std::move(on_ready);
  epoll_event event{EPOLLIN | EPOLLONESHOT, {.fd = fd}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void Watcher::Forget(int fd) {
  const std::lock_guard lock(mu_);
  if (watched_.erase(fd) > 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

void Watcher::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == stop_) return;
      std::function<void()> on_ready;
      {
        const std::lock_guard lock(mu_);
        const auto it = watched_.find(fd);
        if (it == watched_.end()) continue;  // forgotten meanwhile
        on_ready = std::move(it->second);
        watched_.erase(it);
        epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
      }
      on_ready();
    }
  }
}

}  // namespace bridge::local::lifecycle
