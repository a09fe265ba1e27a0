// SPDX-License-Identifier: Apache-2.0
//
// execd: the daemon inside a sandbox. Flags and environment are those of OpenSandbox's own, plus
// --compat, --listen, --listen-fd and --port-file. Ends on SIGTERM or SIGINT, with everything that
// it started.
//
// The OpenSandbox server starts the daemon's image once with "tail -f /dev/null" behind its entry
// point, only to copy the file out of it; so with any plain argument the program ends at once and
// well.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "bridge/base/descriptor_limit.h"
#include "bridge/base/standard_streams.h"
#include "bridge/local/execd/daemon.h"
#include "bridge/local/execd/flags.h"

namespace bridge::local::execd {
namespace {

int Run(int argc, char** argv) {
  Flags flags;
  const FlagResult parsed = ParseFlags(argc, argv, &flags);
  if (!parsed.error.empty()) {
    fprintf(stderr, "execd: %s\n", parsed.error.c_str());
    return 2;
  }
  if (parsed.exit_at_once) return 0;

  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);  // before any thread exists
  RaiseDescriptorLimit();
  // Output that this program makes belongs to nobody else.
  signal(SIGHUP, SIG_IGN);

  auto daemon = Daemon::Start(flags.ToOptions());
  if (!daemon.ok()) {
    fprintf(stderr, "execd: cannot listen on %s:%d: %s\n", flags.host.c_str(), flags.listen_port,
            std::string(daemon.status().message()).c_str());
    return 1;
  }
  if (!flags.port_file.empty()) {
    // Renamed into place, so that a reader never sees half of it.
    const std::string half = flags.port_file + ".new";
    std::ofstream(half) << (*daemon)->port() << "\n";
    if (rename(half.c_str(), flags.port_file.c_str()) != 0) {
      fprintf(stderr, "execd: cannot write the port file\n");
      return 1;
    }
  }
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  daemon->reset();
  return 0;
}

}  // namespace
}  // namespace bridge::local::execd

RESERVE_STANDARD_STREAMS_BEFORE_MAIN;

int main(int argc, char** argv) { return bridge::local::execd::Run(argc, argv); }
