// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/watcher.h — one thread that waits for processes to end.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace bridge::local::lifecycle {

class Watcher {
 public:
  Watcher();
  ~Watcher();

  // Calls `on_ready` once, in the watcher's thread, when `fd` (of a process) becomes readable.
  // Forget it before closing the descriptor.
  void Watch(int fd, std::function<void()> on_ready);
  void Forget(int fd);

 private:
  void Run();

  const int epoll_;
  const int stop_;
  std::mutex mu_;
  std::map<int, std::function<void()>> watched_;
  std::thread thread_;
};

}  // namespace bridge::local::lifecycle
