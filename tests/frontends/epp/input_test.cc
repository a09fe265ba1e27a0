// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/input.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "frontends/epp/errors.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

struct Receiver final : InputReceiver {
  void OnMessage(Message message) override {
    std::lock_guard lock(mu);
    messages.push_back(std::move(message));
    changed.notify_all();
  }
  void OnEndOfInput() override {
    std::lock_guard lock(mu);
    ended = true;
    changed.notify_all();
  }
  void WaitFor(size_t count) {
    std::unique_lock lock(mu);
    EXPECT_TRUE(
        changed.wait_for(lock, std::chrono::seconds(10), [&] { return messages.size() >= count; }));
  }
  void WaitForEnd() {
    std::unique_lock lock(mu);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return ended; }));
  }
  std::mutex mu;
  std::condition_variable changed;
  std::vector<Message> messages;
  bool ended = false;
};

class InputTest : public testing::Test {
 protected:
  InputTest() { EXPECT_EQ(pipe(fds_), 0); }
  ~InputTest() override {
    close(fds_[0]);
    if (fds_[1] >= 0) close(fds_[1]);
  }
  void Write(const std::string& text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = write(fds_[1], text.data() + done, text.size() - done);
      ASSERT_GT(n, 0);
      done += static_cast<size_t>(n);
    }
  }
  int fds_[2];
  Receiver receiver_;
};

TEST_F(InputTest, HandsMessagesOverAndTellsTheEnd) {
  PendingBytes pending(1 << 20);
  Input input(fds_[0], pending, receiver_);
  Write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"b\"}");
  close(std::exchange(fds_[1], -1));
  receiver_.WaitForEnd();
  ASSERT_EQ(receiver_.messages.size(), 2u);
  EXPECT_EQ(receiver_.messages[0].method, "a");
  EXPECT_EQ(receiver_.messages[1].method, "b");
  EXPECT_EQ(pending.held(), receiver_.messages[0].bytes + receiver_.messages[1].bytes);
}

// The receiver answers nothing and the reader goes on: the host's writes never block.
TEST_F(InputTest, AlwaysReads) {
  PendingBytes pending(3 << 20);
  Input input(fds_[0], pending, receiver_);
  const std::string big = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"x\":\"" +
                          std::string(1 << 20, 'x') + "\"}}\n";
  for (int i = 0; i < 10; ++i) Write(big);
  receiver_.WaitFor(10);
  EXPECT_LE(pending.held(), 3u << 20);
  EXPECT_TRUE(receiver_.messages[0].error.ok());
  const Message& refused = receiver_.messages[9];
  EXPECT_EQ(ToEppError(refused.error).code, kQuota);
  EXPECT_EQ(refused.id, "1");
  EXPECT_TRUE(refused.params.empty());
  // With room again, requests are taken again.
  pending.Give(receiver_.messages[0].bytes);
  Write(big);
  receiver_.WaitFor(11);
  EXPECT_TRUE(receiver_.messages[10].error.ok());
}

TEST_F(InputTest, SkipsLinesThatAreTooLong) {
  PendingBytes pending(64 << 20);
  Input input(fds_[0], pending, receiver_);
  Write("{\"jsonrpc\": \"2.0\", \"id\": 5, \"x\": \"");
  const std::string chunk(1 << 20, 'A');
  for (int i = 0; i < 32; ++i) Write(chunk);
  Write("\"}\n{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"m\"}\n");
  receiver_.WaitFor(2);
  EXPECT_EQ(receiver_.messages[0].id, "5");
  EXPECT_EQ(ToEppError(receiver_.messages[0].error).code, kProviderError);
  EXPECT_TRUE(receiver_.messages[1].error.ok());
}

TEST_F(InputTest, StopsWhileTheHostKeepsItsEndOpen) {
  PendingBytes pending(1 << 20);
  Input input(fds_[0], pending, receiver_);
  input.Stop();
  EXPECT_TRUE(receiver_.ended);
}

}  // namespace
}  // namespace bridge::epp
