// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/cancelled_ids.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge::local::execd::extra {
namespace {

const absl::Time kStart = absl::UnixEpoch();

TEST(CancelledIds, AreKnownForTheirTime) {
  CancelledIds ids;
  EXPECT_FALSE(ids.Contains("a", kStart));
  ids.Add("a", kStart);
  ids.Add("b", kStart + absl::Minutes(5));
  ids.Add("a", kStart + absl::Minutes(6));  // once is enough
  EXPECT_TRUE(ids.Contains("a", kStart + CancelledIds::kLife));
  EXPECT_FALSE(ids.Contains("a", kStart + CancelledIds::kLife + absl::Seconds(1)));
  EXPECT_TRUE(ids.Contains("b", kStart + CancelledIds::kLife + absl::Seconds(1)));
  ids.Add("a", kStart + absl::Minutes(11));
  EXPECT_TRUE(ids.Contains("a", kStart + absl::Minutes(12)));
}

TEST(CancelledIds, TheNewestAreKept) {
  CancelledIds ids;
  for (size_t i = 0; i <= CancelledIds::kMost; ++i) ids.Add(std::to_string(i), kStart);
  EXPECT_FALSE(ids.Contains("0", kStart));
  EXPECT_TRUE(ids.Contains("1", kStart));
  EXPECT_TRUE(ids.Contains(std::to_string(CancelledIds::kMost), kStart));
}

}  // namespace
}  // namespace bridge::local::execd::extra
