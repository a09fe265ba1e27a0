// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/backoff.h — how long to wait before the next try. Two habits:
//   Jittered   for requests that failed: anything between nothing and a doubling bound ("full
//              jitter"), so that callers who failed together do not come back together;
//   Steady     for looking whether something has settled: doubling from a short first look.
// Plain values; one thread each.
#pragma once

#include <algorithm>
#include <functional>

#include "absl/time/time.h"

namespace bridge {

// A number in [0, 1). Tests give their own.
using RandomFraction = std::function<double()>;
RandomFraction SystemRandom();

class Backoff {
 public:
  static Backoff Jittered(absl::Duration first, absl::Duration most, RandomFraction random) {
    return Backoff(first, most, std::move(random));
  }
  static Backoff Steady(absl::Duration first, absl::Duration most) {
    return Backoff(first, most, nullptr);
  }

  absl::Duration Next() {
    const absl::Duration bound = bound_;
    bound_ = std::min(bound_ * 2, most_);
    return random_ ? bound * random_() : bound;
  }

 private:
  Backoff(absl::Duration first, absl::Duration most, RandomFraction random)
      : bound_(first), most_(most), random_(std::move(random)) {}

  absl::Duration bound_;
  absl::Duration most_;
  RandomFraction random_;
};

}  // namespace bridge
