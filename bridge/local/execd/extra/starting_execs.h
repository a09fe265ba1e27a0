// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/starting_execs.h — execs that are being started: asked for, and not yet a process.
//
// A client that is cut while its command waits to be forked is gone at once, and its next one
// comes at once: what was cancelled waits here for its turn only to be dropped, so it takes no
// room from those that want to run. Not synchronised, but for `cancelled`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <list>
#include <string>
#include <utility>

namespace bridge::local::execd::extra {

struct StartingExec {
  explicit StartingExec(std::string id) : id(std::move(id)) {}
  const std::string id;                 // empty when the client did not choose one
  std::atomic<bool> cancelled = false;  // a DELETE came first
};

class StartingExecs {
 public:
  using Place = std::list<StartingExec>::iterator;  // until it is removed

  Place Add(const std::string& id) { return all_.emplace(all_.end(), id); }
  void Remove(Place place) { all_.erase(place); }

  StartingExec* FindOrNull(const std::string& id) {
    const auto it = std::ranges::find(all_, id, &StartingExec::id);
    return it == all_.end() ? nullptr : &*it;
  }

  // How many shall become a process.
  size_t wanted() const {
    return static_cast<size_t>(
        std::ranges::count_if(all_, [](const StartingExec& exec) { return !exec.cancelled; }));
  }

 private:
  std::list<StartingExec> all_;
};

}  // namespace bridge::local::execd::extra
