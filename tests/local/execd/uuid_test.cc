// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/uuid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace bridge::local::execd {
namespace {

TEST(Uuid, FormAndVariety) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(RandomUuid(), testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]"
                                                    "[0-9a-f]{3}-[0-9a-f]{12}"));
    EXPECT_THAT(RandomHex32(), testing::MatchesRegex("[0-9a-f]{32}"));
    seen.insert(RandomHex32());
    seen.insert(RandomUuid());
  }
  EXPECT_EQ(seen.size(), 200u);
}

}  // namespace
}  // namespace bridge::local::execd
