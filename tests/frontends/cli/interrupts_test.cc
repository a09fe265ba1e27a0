// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/interrupts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

namespace bridge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class InterruptsTest : public ::testing::Test {
 protected:
  std::vector<int> ended_;
  std::vector<std::string> acted_;
  Interrupts interrupts_{[this](int exit_code) { ended_.push_back(exit_code); }};
};

TEST_F(InterruptsTest, WithoutAScopeTheFirstSignalEnds) {
  interrupts_.Deliver(SIGTERM);
  EXPECT_THAT(ended_, ElementsAre(143));
  EXPECT_EQ(interrupts_.first(), SIGTERM);
}

TEST_F(InterruptsTest, TheFirstSignalActsAndTheSecondEnds) {
  const Interrupts::Scope scope(interrupts_, [&](int s) { acted_.push_back(std::to_string(s)); });
  interrupts_.Deliver(SIGINT);
  EXPECT_THAT(acted_, ElementsAre("2"));
  EXPECT_THAT(ended_, IsEmpty());
  interrupts_.Deliver(SIGHUP);
  EXPECT_THAT(acted_, ElementsAre("2"));
  EXPECT_THAT(ended_, ElementsAre(129));
  EXPECT_EQ(interrupts_.first(), SIGINT);
}

TEST_F(InterruptsTest, TheInnerScopeHidesTheOuter) {
  const Interrupts::Scope outer(interrupts_, [&](int) { acted_.push_back("outer"); });
  {
    const Interrupts::Scope inner(interrupts_, [&](int) { acted_.push_back("inner"); });
  }
  interrupts_.Deliver(SIGINT);
  EXPECT_THAT(acted_, ElementsAre("outer"));
}

TEST_F(InterruptsTest, AScopeThatIsOverIsNotCalled) {
  {
    const Interrupts::Scope scope(interrupts_, [&](int) { acted_.push_back("late"); });
  }
  interrupts_.Deliver(SIGINT);
  EXPECT_THAT(acted_, IsEmpty());
  EXPECT_THAT(ended_, ElementsAre(130));
}

TEST_F(InterruptsTest, CleansUpBeforeTheEnd) {
  interrupts_.OnEnd([&] { acted_.push_back(ended_.empty() ? "before" : "after"); });
  interrupts_.Deliver(SIGINT);
  EXPECT_THAT(acted_, ElementsAre("before"));
}

// nohup's, or that of a shell for what it runs in the background.
TEST(Interrupts, ASignalThatIsIgnoredStaysIgnored) {
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_IGN);
  std::promise<int> arrived;
  Interrupts interrupts([](int) {});
  interrupts.Watch();
  const Interrupts::Scope scope(interrupts, [&](int s) { arrived.set_value(s); });
  // Of two that wait, the lower number is taken first.
  ASSERT_EQ(kill(getpid(), SIGHUP), 0);
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  EXPECT_EQ(arrived.get_future().get(), SIGTERM);
  signal(SIGHUP, SIG_DFL);
}

TEST(Interrupts, RealSignalsArriveOnAnotherThread) {
  signal(SIGTERM, SIG_DFL);  // whoever runs the test may have ignored it
  std::promise<int> arrived;
  Interrupts interrupts([](int) {});
  interrupts.Watch();
  const Interrupts::Scope scope(interrupts, [&](int s) { arrived.set_value(s); });
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  auto future = arrived.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(future.get(), SIGTERM);
}

}  // namespace
}  // namespace bridge::cli
