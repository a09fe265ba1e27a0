// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/cancelled_ids.h — ids of execs that were ended before they were heard of.
//
// Who cuts a start cannot know whether the start or the DELETE gets here first. A DELETE that was
// first is remembered, so that its start is refused when it comes after all. For ten minutes, and
// no more than 8,192 of them: the newest. Not synchronised.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/time/time.h"

namespace bridge::local::execd::extra {

class CancelledIds {
 public:
  static constexpr absl::Duration kLife = absl::Minutes(10);
  static constexpr size_t kMost = 8192;

  void Add(const std::string& id, absl::Time now) {
    Forget(now);
    if (!ids_.insert(id).second) return;
    order_.emplace_back(id, now);
    if (order_.size() > kMost) Pop();
  }

  bool Contains(const std::string& id, absl::Time now) {
    Forget(now);
    return ids_.contains(id);
  }

 private:
  void Forget(absl::Time now) {
    while (!order_.empty() && now - order_.front().second > kLife) Pop();
  }
  void Pop() {
    ids_.erase(order_.front().first);
    order_.pop_front();
  }

  std::unordered_set<std::string> ids_;
  std::deque<std::pair<std::string, absl::Time>> order_;  // oldest first
};

}  // namespace bridge::local::execd::extra
