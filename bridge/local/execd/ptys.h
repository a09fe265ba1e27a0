// SPDX-License-Identifier: Apache-2.0
//
// local/execd/ptys.h — all `/pty` sessions and their routes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "bridge/local/execd/commands.h"
#include "bridge/local/execd/habits.h"
#include "bridge/local/execd/pty.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd {

// Any thread. All that it is given outlives it.
class Ptys {
 public:
  Ptys(Processes& processes, const Commands& commands, Habits habits);

  // This object outlives the router.
  void AddRoutes(http::Router& router);

 private:
  void Create(http::Exchange& exchange);
  void Status(http::Exchange& exchange);
  void Remove(http::Exchange& exchange);
  void Attach(http::Exchange& exchange);
  std::shared_ptr<Pty> Find(const std::string& id) const;

  Processes& processes_;
  const Commands& commands_;
  const Habits habits_;
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<Pty>> ptys_;
};

}  // namespace bridge::local::execd
