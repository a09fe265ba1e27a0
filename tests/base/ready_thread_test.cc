// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/ready_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/fakes/sanitized.h"

namespace bridge {
namespace {

TEST(ReadyThreadTest, DoesItsWork) {
  auto thread = ReadyThread::Make();
  ASSERT_TRUE(thread);
  int done = 0;
  std::move(*thread).Run([&done, one = std::make_unique<int>(1)] { done = *one; }).join();
  EXPECT_EQ(done, 1);
}

TEST(ReadyThreadTest, EndsWithoutWork) {
  auto thread = ReadyThread::Make();
  ASSERT_TRUE(thread);
  const ReadyThread moved = std::move(*thread);  // both are destroyed here, one of them empty
}

// In a process of its own, whose address space has no place for another stack.
TEST(ReadyThreadTest, IsNothingWhereThereIsNoRoom) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs the address space for itself";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<ReadyThread> threads;  // stacks of ended threads are used again at first
    threads.reserve(1000);
    const rlimit small{64 << 10, 64 << 10};
    setrlimit(RLIMIT_AS, &small);
    while (threads.size() < threads.capacity()) {
      auto made = ReadyThread::Make();
      if (!made) _exit(0);
      threads.push_back(*std::move(made));
    }
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace bridge
