// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/execd_process.h — our execd as a process of its own, on a free loopback port.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace bridge {

class ExecdProcess {
 public:
  // `args`: more flags ("--compat=1.1.0"). The test must have //bridge/local:execd in its data.
  explicit ExecdProcess(std::vector<std::string> args = {});
  ~ExecdProcess();
  ExecdProcess(const ExecdProcess&) = delete;
  ExecdProcess& operator=(const ExecdProcess&) = delete;

  int port() const { return port_; }
  std::string url() const;
  // A directory of the test's own that the daemon has as TMPDIR; removed with this.
  const std::string& tmpdir() const { return tmpdir_; }
  pid_t pid() const { return pid_; }
  void Kill(int signal) const;

 private:
  std::string tmpdir_;
  pid_t pid_ = -1;
  int port_ = 0;
};

// Processes whose command line holds `text`, zombies not counted.
std::vector<pid_t> ProcessesWith(const std::string& text);

// Those that are left when all were killed: what is dying gets five seconds for it.
std::vector<pid_t> SurvivorsWith(const std::string& text);

}  // namespace bridge
