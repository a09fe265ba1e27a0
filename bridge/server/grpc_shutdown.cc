// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/grpc_shutdown.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace bridge {
namespace {

constexpr std::chrono::milliseconds kLook{2};
// What interrupted calls get for cleaning up before gRPC cuts their connections.
constexpr absl::Duration kAfterInterrupt = absl::Seconds(2);
// Closing a socket with unread bytes in it drops what was sent last, so give the last answer time
// to be read.
constexpr std::chrono::milliseconds kLinger{50};

// True: every call has ended within `bound`.
bool WaitForCalls(const CallHost& host, absl::Duration bound) {
  const auto end = std::chrono::steady_clock::now() +
                   absl::ToChronoMilliseconds(std::min(bound, absl::Hours(24 * 365)));
  while (host.live() > 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace

void ShutdownCalls(grpc::Server& server, CallHost& host, absl::Duration grace) {
  const bool busy = host.live() > 0;
  host.StartDraining(absl::Seconds(1));
  // Tells every client to go elsewhere, closes the listener, and returns when all streams have
  // ended, which is at the latest when they are cancelled below.
  std::atomic<bool> down{false};
  std::thread shutdown([&server, &down] {
    server.Shutdown(std::chrono::system_clock::time_point::max());
    down.store(true);
  });
  if (!WaitForCalls(host, grace)) {
    host.InterruptAll();
    WaitForCalls(host, kAfterInterrupt);
  }
  if (busy) std::this_thread::sleep_for(kLinger);
  // More than once, because it does nothing before the other thread has begun.
  while (!down.load()) {
    grpc_server_cancel_all_calls(server.c_server());
    std::this_thread::sleep_for(kLook);
  }
  shutdown.join();
  server.Wait();
  WaitForCalls(host, kAfterInterrupt);
}

}  // namespace bridge
