// SPDX-License-Identifier: Apache-2.0
//
// local/faults/fault_injector.h — carries out a FaultPlan on the exchanges of a server. For tests.
// Any thread; a plan may be replaced while exchanges run, those already begun keep theirs.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bridge/local/faults/faults.pb.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::faults {

class FaultInjector {
 public:
  // Replaces the plan; counting starts anew.
  void SetPlan(FaultPlan plan);
  // The plan in text form. INVALID_ARGUMENT when it cannot be read; then nothing changes.
  absl::Status SetPlanText(std::string_view text);

  // How often the rule of that index acted.
  int fired(size_t rule) const;

  // For http::ServerOptions::hooks. This object must outlive the server.
  http::HookFactory Hooks(Half half);

 private:
  struct Counted {
    Rule rule;
    int seen = 0;
    int fired = 0;
  };
  std::vector<Action> ActionsFor(Half half, const http::Request& request);

  mutable std::mutex mu_;
  std::vector<Counted> rules_;
};

}  // namespace bridge::local::faults
