// SPDX-License-Identifier: Apache-2.0
//
// The plugin's process: takes the streams, starts the threads, waits for the end.
//
//   threads   main      signals' counterpart: waits for the end, then for what calls left behind
//             reader    input.h, always reading
//             writer    output.h
//             loop      session.h and everything that calls do
//             signals   SIGTERM and friends are an end of input
//             gRPC's    rpc.h, and those of the bridge that the plugin carries
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "absl/time/time.h"
#include "bridge/base/standard_streams.h"
#include "bridge/net/event_loop.h"
#include "frontends/epp/in_process_link.h"
#include "frontends/epp/input.h"
#include "frontends/epp/manifest.h"
#include "frontends/epp/output.h"
#include "frontends/epp/session.h"
#include "frontends/epp/standard_streams.h"

namespace bridge::epp {
namespace {

// Requests that wait for their answers, together.
constexpr size_t kMaxPendingBytes = 64 * 1024 * 1024;
constexpr absl::Duration kLastWords = absl::Seconds(1);

// Before any thread, so that all inherit it: one thread of ours takes them.
sigset_t BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return set;
}

int Run() {
  const int protocol = TakeStandardOutput();
  if (protocol < 0) {
    std::fputs("opensandbox: standard input or output is missing\n", stderr);
    return 2;
  }
  const sigset_t signals = BlockSignals();
  // These live as long as the process: threads may still look at them when it ends.
  auto& loop = *new EventLoop(Clock::Real(), "epp-loop");
  auto& pending = *new PendingBytes(kMaxPendingBytes);
  static Session* session = nullptr;
  auto& output = *new Output(protocol, [] { session->Terminate(); });
  session = new Session(loop, output, pending, {.make_link = MakeLink});
  std::thread([&signals] {
    int signal = 0;
    while (sigwait(&signals, &signal) == 0) session->Terminate();
  }).detach();
  new Input(STDIN_FILENO, pending, *session);
  const bool clean = session->WaitUntilOver();
  output.Flush(kLastWords);
  if (!clean) {
    std::fputs(
        "opensandbox: ended before everything was cleaned up; a sandbox or a command that was "
        "being made may be left\n",
        stderr);
  }
  // Nothing is left to do; taking the threads down in order would only take time.
  std::fflush(stderr);
  _exit(clean ? 0 : 1);
}

}  // namespace
}  // namespace bridge::epp

RESERVE_STANDARD_STREAMS_BEFORE_MAIN;

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    const std::string version =
        fmt::format("opensandbox-provider {} ({})\n", bridge::epp::manifest::kVersion,
                    bridge::epp::manifest::kProtocol);
    std::fputs(version.c_str(), stdout);
    return 0;
  }
  if (argc > 1 || isatty(STDIN_FILENO)) {
    std::fputs(
        "This is the OpenSandbox provider of Agent Sandbox. The SDK starts it by itself and speaks "
        "EPP/1 with it on standard input and output; see README.md beside it.\n",
        stderr);
    return 2;
  }
  return bridge::epp::Run();
}
