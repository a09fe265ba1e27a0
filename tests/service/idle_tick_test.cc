// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/idle_tick.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/time.h"

namespace bridge {
namespace {

// Whether gRPC has a thread that runs callbacks.
bool HasCallbackThread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name == "nexting_thread") return true;
  }
  return false;
}

// gRPC's threads that run callbacks go with the last channel. When one of them dropped it, they
// read their queue behind its end and freed it twice.
TEST(IdleTick, EndsInTheMiddleOfATick) {
  for (int round = 0; round < 500; ++round) {
    const IdleTick tick(absl::ZeroDuration());
    while (!HasCallbackThread()) {
    }
  }
}

}  // namespace
}  // namespace bridge
