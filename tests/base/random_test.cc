// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace bridge {
namespace {

TEST(RandomHex, HasTheLengthAndTheAlphabet) {
  EXPECT_EQ(RandomHex(0), "");
  const std::string hex = RandomHex(16);
  EXPECT_EQ(hex.size(), 32u);
  EXPECT_EQ(hex.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(RandomHex, DoesNotRepeatItself) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(RandomHex(16));
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace bridge
