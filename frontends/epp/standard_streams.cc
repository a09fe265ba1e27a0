// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/standard_streams.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bridge::epp {

namespace {

// Libraries open descriptors before main(): a number that was closed may be one of theirs by now.
// Those are anonymous; what a parent hands down has a type.
bool IsStream(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 && (info.st_mode & S_IFMT) != 0;
}

}  // namespace

int TakeStandardOutput() {
  if (!IsStream(STDIN_FILENO) || !IsStream(STDOUT_FILENO)) return -1;
  if (fcntl(STDERR_FILENO, F_GETFD) < 0 && open("/dev/null", O_WRONLY) < 0) return -1;
  const int protocol = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (protocol >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
  return protocol;
}

}  // namespace bridge::epp
