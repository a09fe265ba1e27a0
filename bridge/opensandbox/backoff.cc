// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/backoff.h"

#include <random>

namespace bridge {

RandomFraction SystemRandom() {
  return [] {
    thread_local std::mt19937_64 engine(std::random_device{}());
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
  };
}

}  // namespace bridge
