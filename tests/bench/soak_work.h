// SPDX-License-Identifier: Apache-2.0
//
// tests/bench/soak_work.h — one round of each kind of work that a bridge does all day. A round that
// does not give what it must give is a failure; its text names the work and what was seen, never
// the content.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bridge::bench {

struct Work {
  const char* name;
  // Empty when all was as it must be. One thread.
  std::function<std::string()> round;
};

// Unary calls, commands with output, files both ways, processes with a terminal, streams cut at
// random, sandboxes made and deleted. `sandbox_id` stays.
std::vector<Work> AllWork(const std::shared_ptr<grpc::Channel>& channel,
                          const std::string& sandbox_id);

}  // namespace bridge::bench
