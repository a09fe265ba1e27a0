// SPDX-License-Identifier: Apache-2.0
//
// tests/server/bridge_process.h — the real sandbox_bridge as a child of a test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace bridge::testing {

class BridgeProcess {
 public:
  struct Options {
    std::vector<std::string> wrapper = {};  // program and arguments in front of the bridge
    std::vector<std::string> arguments = {};
    std::vector<std::string> environment = {};  // all of it: "NAME=value"
    bool close_stderr = false;                  // nobody reads what it logs
  };

  explicit BridgeProcess(Options options);
  ~BridgeProcess();  // kills it
  BridgeProcess(const BridgeProcess&) = delete;
  BridgeProcess& operator=(const BridgeProcess&) = delete;

  // "127.0.0.1:40404" once it listens, "" when it ended instead or took over ten seconds.
  std::string WaitForAddress();
  // The same for the admin server's port.
  int WaitForAdminPort();
  // True once `text` is in what it logged.
  bool WaitForLog(const std::string& text);

  void Signal(int signal) const;
  pid_t pid() const { return pid_; }

  // What waitpid says, nullopt when it still runs after `bound`.
  std::optional<int> Wait(std::chrono::milliseconds bound);
  // All of stderr so far; complete after Wait().
  std::string log() const;

  // The program.
  static std::string Path();

 private:
  void ReadLog(int fd);
  std::string WaitForWordAfter(const std::string& text);

  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::string log_;         // guarded by mu_
  bool log_ended_ = false;  // guarded by mu_
  std::thread reader_;
};

}  // namespace bridge::testing
