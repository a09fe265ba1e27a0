// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/watcher.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <future>

namespace bridge::local::lifecycle {
namespace {

TEST(Watcher, CallsOnce) {
  const int fd = eventfd(0, EFD_CLOEXEC);
  std::promise<void> called;
  {
    Watcher watcher;
    watcher.Watch(fd, [&called] { called.set_value(); });
    eventfd_write(fd, 1);
    EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
    // It stays readable; a second call would throw.
  }
  close(fd);
}

TEST(Watcher, ForgottenOnesStaySilent) {
  const int silent = eventfd(0, EFD_CLOEXEC);
  const int heard = eventfd(0, EFD_CLOEXEC);
  std::promise<void> called;
  {
    Watcher watcher;
    watcher.Watch(silent, [] { FAIL(); });
    watcher.Forget(silent);
    watcher.Forget(silent);
    eventfd_write(silent, 1);
    watcher.Watch(heard, [&called] { called.set_value(); });
    eventfd_write(heard, 1);
    EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  }
  close(silent);
  close(heard);
}

TEST(Watcher, ACallbackMayWatchAgain) {
  const int first = eventfd(1, EFD_CLOEXEC);
  const int second = eventfd(1, EFD_CLOEXEC);
  std::promise<void> called;
  {
    Watcher watcher;
    watcher.Watch(first, [&] { watcher.Watch(second, [&called] { called.set_value(); }); });
    EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  }
  close(first);
  close(second);
}

}  // namespace
}  // namespace bridge::local::lifecycle
