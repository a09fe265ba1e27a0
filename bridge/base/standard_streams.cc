// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/standard_streams.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bridge {

// Sanitizers are not there yet, so they look at nothing of this, nor at what it calls.
__attribute__((no_sanitize("address", "thread", "undefined"))) void ReserveStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (syscall(SYS_fcntl, fd, F_GETFD) >= 0) continue;
    // The lowest number that is free is taken, which is this one: those below are not.
    if (fd == STDERR_FILENO && syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY) >= 0) continue;
    syscall(SYS_openat, AT_FDCWD, "/", O_PATH);
  }
}

bool IsClosed(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags < 0 || (flags & O_PATH) != 0;
}

}  // namespace bridge
