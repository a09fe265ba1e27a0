// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace bridge {
namespace {

// What `check` says in a process of its own.
int InChild(const std::function<int()>& check) {
  const pid_t pid = fork();
  if (pid == 0) _exit(check());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, ClosedOnesAreReserved) {
  for (int closed = 1; closed < 8; ++closed) {
    EXPECT_EQ(InChild([closed] {
                for (int fd = 0; fd < 3; ++fd) {
                  if ((closed & 1 << fd) != 0) close(fd);
                }
                ReserveStandardStreams();
                if (open("/dev/null", O_RDWR) < 3) return 1;
                char byte = 0;
                if ((closed & 1) != 0 && read(0, &byte, 1) >= 0) return 2;
                if ((closed & 2) != 0 && write(1, &byte, 1) >= 0) return 3;
                if (write(2, "", 0) < 0) return 4;
                if (IsClosed(0) != ((closed & 1) != 0)) return 5;
                if (IsClosed(1) != ((closed & 2) != 0)) return 6;
                return IsClosed(2) ? 7 : 0;
              }),
              0)
        << closed;
  }
}

TEST(StandardStreams, OpenOnesAreLeftAlone) {
  EXPECT_EQ(InChild([] {
              ReserveStandardStreams();
              return IsClosed(0) || IsClosed(1) || IsClosed(2) ? 1 : 0;
            }),
            0);
  EXPECT_TRUE(IsClosed(-1));
}

}  // namespace
}  // namespace bridge
