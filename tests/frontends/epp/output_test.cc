// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/output.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "frontends/epp/message.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe(fds_), 0);
  }
  ~OutputTest() override {
    for (const int fd : fds_) {
      if (fd >= 0) close(fd);
    }
  }
  std::string ReadBytes(size_t count) {
    std::string text(count, '\0');
    for (size_t done = 0; done < count;) {
      const ssize_t n = read(fds_[0], text.data() + done, count - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    return text;
  }
  int fds_[2];
};

TEST_F(OutputTest, WritesLinesWholeAndInOrder) {
  Output output(fds_[1], [] {});
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    const std::string line =
        std::to_string(i) + std::string(static_cast<size_t>(i) * 97, 'x') + "\n";
    expected += line;
    output.Write(line);
  }
  EXPECT_EQ(ReadBytes(expected.size()), expected);
}

TEST_F(OutputTest, NeverMixesTheLinesOfManyThreads) {
  Output output(fds_[1], [] {});
  constexpr int kThreads = 8, kLines = 50;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&output, t] {
      const std::string line = std::string(20'000, static_cast<char>('a' + t)) + "\n";
      for (int i = 0; i < kLines; ++i) output.Write(line);
    });
  }
  for (int i = 0; i < kThreads * kLines; ++i) {
    const std::string line = ReadBytes(20'001);
    EXPECT_EQ(line, std::string(20'000, line[0]) + "\n");
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(OutputTest, AHostThatDoesNotReadBlocksNobody) {
  Output output(fds_[1], [] {});
  const std::string line = std::string(1 << 20, 'x') + "\n";
  for (int i = 0; i < 8; ++i) output.Write(line);
  EXPECT_GT(output.pending_bytes(), Output::kHighWatermarkBytes);
  absl::Notification drained;
  output.OnDrained([&] { drained.Notify(); });
  EXPECT_FALSE(drained.HasBeenNotified());
  EXPECT_FALSE(output.Flush(absl::Milliseconds(10)));
  ReadBytes(line.size() * 8);
  EXPECT_TRUE(drained.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_TRUE(output.Flush(absl::Seconds(10)));
  EXPECT_EQ(output.pending_bytes(), 0u);
}

TEST_F(OutputTest, CallsBackAtOnceWhenThereIsRoom) {
  Output output(fds_[1], [] {});
  bool called = false;
  output.OnDrained([&] { called = true; });
  EXPECT_TRUE(called);
}

TEST_F(OutputTest, TellsOnceThatTheHostIsGone) {
  std::atomic<int> broken{0};
  absl::Notification first;
  {
    Output output(fds_[1], [&] {
      if (broken++ == 0) first.Notify();
    });
    close(std::exchange(fds_[0], -1));
    output.Write("a\n");
    EXPECT_TRUE(first.WaitForNotificationWithTimeout(absl::Seconds(10)));
    bool drained = false;
    output.Write("b\n");
    output.OnDrained([&] { drained = true; });
    EXPECT_TRUE(drained);
    EXPECT_TRUE(output.Flush(absl::Seconds(1)));
  }
  EXPECT_EQ(broken, 1);
}

TEST_F(OutputTest, EndsAlsoWhileTheHostDoesNotRead) {
  auto output = std::make_unique<Output>(fds_[1], [] {});
  for (int i = 0; i < 4; ++i) output->Write(std::string(1 << 20, 'x') + "\n");
  output.reset();
}

TEST_F(OutputTest, RefusesALineThatWouldGetThePluginKilled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Output output(fds_[1], [] {});
        output.Write(std::string(kMaxLineBytes + 1, 'x'));
      },
      "");
}

}  // namespace
}  // namespace bridge::epp
