// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace bridge::epp {

int TakeStandardOutput() {
  // A closed one would be given to the next file or socket that somebody opens.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return -1;
  }
  const int protocol = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (protocol >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
  return protocol;
}

}  // namespace bridge::epp
