// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include "bridge/base/standard_streams.h"

namespace bridge::epp {

int TakeStandardOutput() {
  if (IsClosed(STDIN_FILENO) || IsClosed(STDOUT_FILENO)) return -1;
  const int protocol = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (protocol >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
  return protocol;
}

}  // namespace bridge::epp
