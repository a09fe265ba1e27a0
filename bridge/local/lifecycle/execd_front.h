// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/execd_front.h — for tests: a transparent server before each sandbox's daemon, in
// this process, so that hooks (faults, the recorder) see the daemon's exchanges too. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bridge/local/http/server.h"
#include "bridge/local/lifecycle/record.h"

namespace bridge::local::lifecycle {

class ExecdFronts {
 public:
  ExecdFronts(std::string host, std::vector<http::HookFactory> hooks)
      : host_(std::move(host)), hooks_(std::move(hooks)) {}

  // Where the front of a sandbox's daemon listens; made when first asked for. Without one (no port
  // was free), the daemon's own port.
  int PortOf(const SandboxRecord& record);
  void Drop(const std::string& id);

 private:
  const std::string host_;
  const std::vector<http::HookFactory> hooks_;
  std::mutex mu_;
  std::map<std::string, std::unique_ptr<http::Server>> fronts_;
};

}  // namespace bridge::local::lifecycle
