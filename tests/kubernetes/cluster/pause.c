// SPDX-License-Identifier: Apache-2.0
//
// The first process of every pod: holds its namespaces, buries its orphans, ends when it is told to.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void End(int signal) {
  (void)signal;
  _exit(0);
}

static void Bury(int signal) {
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  signal(SIGINT, End);
  signal(SIGTERM, End);
  signal(SIGCHLD, Bury);
  for (;;) pause();
}
