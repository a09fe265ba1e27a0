// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/run.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace bridge {
namespace {

bool Ends(int signal, const DrainOptions& options) {
  return signal == SIGTERM || signal == SIGINT || (signal == SIGHUP && options.on_terminal);
}

// What may be done at any time, also while the server drains.
void Serve(int signal, Server& server) {
  if (signal == SIGUSR1) server.DumpCalls();
  if (signal == SIGHUP) server.Reload();
}

int WaitForTheEnd(Server& server, Signals& signals, const DrainOptions& options) {
  while (true) {
    const int signal = signals.Wait();
    if (Ends(signal, options)) return signal;
    Serve(signal, server);
  }
}

// Waits for `bound` or until `over`; a second signal to end does so at once.
void Watch(Server& server, Signals& signals, const DrainOptions& options, absl::Duration bound,
           const std::atomic<bool>* over) {
  const absl::Time end = absl::Now() + bound;
  while (over == nullptr ? absl::Now() < end : !over->load()) {
    const absl::Duration step = over == nullptr ? end - absl::Now() : absl::Milliseconds(5);
    const int signal = signals.Wait(step);
    if (Ends(signal, options)) _exit(128 + signal);
    Serve(signal, server);
  }
}

}  // namespace

int RunUntilSignal(Server& server, Signals& signals, Log& log, const DrainOptions& options) {
  const int signal = WaitForTheEnd(server, signals, options);
  server.MarkNotReady();
  log.Write(LogLevel::kInfo, "draining",
            {{"signal", std::to_string(signal)},
             {"running_calls", std::to_string(server.host().live())},
             {"grace", absl::FormatDuration(options.grace)}});
  if (signal == SIGTERM) Watch(server, signals, options, options.drain_delay, nullptr);
  std::atomic<bool> over{false};
  bool clean = false;
  std::thread shutdown([&] {
    clean = server.Shutdown(options.grace);
    over.store(true);
  });
  Watch(server, signals, options, absl::InfiniteDuration(), &over);
  shutdown.join();
  log.Write(clean ? LogLevel::kInfo : LogLevel::kError, "stopped",
            {{"calls_left", std::to_string(server.host().live())}});
  return clean ? 0 : 3;
}

}  // namespace bridge
