// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/descriptor_limit.h"

#include <gtest/gtest.h>

namespace bridge {
namespace {

TEST(DescriptorLimit, IsRaisedButNotForOthers) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(InheritedDescriptorLimit().rlim_cur, 100u);

  RaiseDescriptorLimit();
  rlimit raised{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
  EXPECT_EQ(InheritedDescriptorLimit().rlim_cur, 100u);
  EXPECT_EQ(InheritedDescriptorLimit().rlim_max, before.rlim_max);
}

}  // namespace
}  // namespace bridge
