// SPDX-License-Identifier: Apache-2.0
//
// execd in surroundings like those of the recordings: root, HOME /root, working directory /, an
// empty /tmp, accounts root and nobody. Needs bwrap and the rights to use it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace bridge::local::execd {

struct JailOptions {
  std::string binary;  // a runfile
  std::vector<std::string> flags;
  std::vector<std::string> env;  // "NAME=value"
};

class Jail {
 public:
  // Starts execd and waits until it listens; dies when it does not.
  explicit Jail(const JailOptions& options);
  ~Jail();

  int port() const { return port_; }
  pid_t pid() const { return pid_; }  // of bwrap
  // A directory of the host that is /run/shared inside.
  const std::string& shared() const { return shared_; }

 private:
  std::string shared_;
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace bridge::local::execd
