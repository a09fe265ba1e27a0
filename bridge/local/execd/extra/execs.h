// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/execs.h — all execs and their routes (docs/execd-extras.md). Any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bridge/local/execd/extra/cancelled_ids.h"
#include "bridge/local/execd/extra/exec.h"
#include "bridge/local/execd/extra/starting_execs.h"
#include "bridge/local/execd/process.h"
#include "bridge/local/execd/timer.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd::extra {

class Execs {
 public:
  // Both outlive this object.
  Execs(Processes& processes, Timer& timer) : processes_(processes), timer_(timer) {}

  // This object outlives the router.
  void AddRoutes(http::Router& router);

 private:
  void Start(http::Exchange& exchange);
  void StartSocket(http::Exchange& exchange);
  void List(http::Exchange& exchange);
  void Info(http::Exchange& exchange);
  void Output(http::Exchange& exchange);
  void AttachSocket(http::Exchange& exchange);
  void Input(http::Exchange& exchange);
  void Signal(http::Exchange& exchange);
  void Remove(http::Exchange& exchange);

  // Started and known, its output still in the pipes.
  std::variant<std::shared_ptr<Exec>, Failure> Make(const ExecSpec& spec);
  std::optional<Failure> Admit(const std::string& id, StartingExecs::Place* place);
  std::shared_ptr<Exec> FindOrNull(const std::string& id);
  // Null, and answered with an error, when there is none of the id in the path.
  std::shared_ptr<Exec> Find(http::Exchange& exchange);
  // Sets what has ended aside, and forgets what of it is old. With mu_ held.
  void ForgetOld();

  Processes& processes_;
  Timer& timer_;
  std::mutex mu_;
  std::condition_variable settled_;  // starting_ has become shorter
  StartingExecs starting_;
  // Apart, so that a start looks at a few and not at all that are kept.
  std::vector<std::shared_ptr<Exec>> running_;  // some may have ended meanwhile
  std::deque<std::shared_ptr<Exec>> ended_;
  CancelledIds cancelled_;
};

}  // namespace bridge::local::execd::extra
