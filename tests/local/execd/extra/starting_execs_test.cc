// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/starting_execs.h"

#include <gtest/gtest.h>

namespace bridge::local::execd::extra {
namespace {

TEST(StartingExecs, ACancelledOneTakesNoRoom) {
  StartingExecs starting;
  const auto first = starting.Add("a");
  const auto second = starting.Add("b");
  starting.Add("");  // two without an id are two
  const auto fourth = starting.Add("");
  EXPECT_EQ(starting.wanted(), 4u);
  starting.FindOrNull("a")->cancelled = true;
  EXPECT_TRUE(first->cancelled);
  EXPECT_FALSE(second->cancelled);
  EXPECT_EQ(starting.wanted(), 3u);
  // It is known until it is dropped: its id is not free yet.
  EXPECT_NE(starting.FindOrNull("a"), nullptr);
  starting.Remove(first);
  EXPECT_EQ(starting.FindOrNull("a"), nullptr);
  EXPECT_EQ(starting.wanted(), 3u);
  starting.Remove(fourth);
  EXPECT_EQ(starting.wanted(), 2u);
}

}  // namespace
}  // namespace bridge::local::execd::extra
