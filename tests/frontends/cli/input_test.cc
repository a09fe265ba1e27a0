// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>

#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(20);
constexpr absl::Duration kForever = absl::Hours(1);

class InputTest : public ::testing::Test {
 protected:
  InputTest() : abandon_(eventfd(0, EFD_NONBLOCK)) { EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0); }
  ~InputTest() override {
    close(abandon_);
    close(pipe_[0]);
    CloseWriter();
  }

  void Send(const std::string& bytes) {
    EXPECT_EQ(write(pipe_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void CloseWriter() {
    if (pipe_[1] >= 0) close(pipe_[1]);
    pipe_[1] = -1;
  }
  absl::StatusOr<Input> Gather(int fd, InputMode mode, absl::Duration grace = kForever) {
    return GatherInput(fd, mode, grace, abandon_);
  }

  std::array<int, 2> pipe_ = {-1, -1};
  const int abandon_;
};

TEST_F(InputTest, AFileIsReadFromWhereItStands) {
  const std::string bytes("a\0b\377", 4);
  const int file = FileWith("header" + bytes);
  lseek(file, 6, SEEK_SET);
  const auto input = Gather(file, InputMode::kAuto);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->bytes, bytes);
  EXPECT_FALSE(input->left_open);
  close(file);
}

TEST_F(InputTest, DevNullIsEmptyAtOnce) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const auto input = Gather(null, InputMode::kAuto);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->bytes, "");
  EXPECT_FALSE(input->left_open);
  close(null);
}

TEST_F(InputTest, APipeThatSpeaksIsReadToItsEnd) {
  Send("first ");
  auto input = std::async(std::launch::async, [&] { return Gather(pipe_[0], InputMode::kAuto); });
  Send("second");
  CloseWriter();
  const auto result = input.get();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->bytes, "first second");
}

TEST_F(InputTest, AClosedPipeIsEmptyAtOnce) {
  CloseWriter();
  const auto input = Gather(pipe_[0], InputMode::kAuto);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->bytes, "");
  EXPECT_FALSE(input->left_open);
}

TEST_F(InputTest, ASilentPipeIsLeftOpen) {
  const auto input = Gather(pipe_[0], InputMode::kAuto, kShort);
  ASSERT_TRUE(input.ok());
  EXPECT_TRUE(input->left_open);
  EXPECT_FALSE(InputCameLate(pipe_[0]));
  Send("x");
  EXPECT_TRUE(InputCameLate(pipe_[0]));
}

TEST_F(InputTest, ASilentSocketIsLeftOpenToo) {
  std::array<int, 2> pair;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  EXPECT_TRUE(Gather(pair[0], InputMode::kAuto, kShort)->left_open);
  close(pair[0]);
  close(pair[1]);
}

TEST_F(InputTest, WaitingOutlastsTheGrace) {
  auto input = std::async(std::launch::async,
                          [&] { return Gather(pipe_[0], InputMode::kWait, absl::ZeroDuration()); });
  Send("slow");
  CloseWriter();
  EXPECT_EQ(input.get()->bytes, "slow");
}

TEST_F(InputTest, NoneDoesNotTouchThePipe) {
  Send("x");
  EXPECT_EQ(Gather(pipe_[0], InputMode::kNone)->bytes, "");
  EXPECT_TRUE(InputCameLate(pipe_[0]));
}

TEST_F(InputTest, ATerminalIsReadOnlyWhenAsked) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(Gather(slave, InputMode::kAuto)->bytes, "");
  const std::string typed = "hello\n\x04";  // Ctrl-D
  ASSERT_EQ(write(master, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  EXPECT_EQ(Gather(slave, InputMode::kWait)->bytes, "hello\n");
  close(master);
  close(slave);
}

TEST_F(InputTest, AClosedStdinIsEmpty) {
  close(pipe_[0]);
  EXPECT_EQ(Gather(pipe_[0], InputMode::kAuto)->bytes, "");
  pipe_[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

TEST_F(InputTest, TheLimitIsExact) {
  const int most = FileWith(std::string(kMaxInputBytes, 'x'));
  EXPECT_EQ(Gather(most, InputMode::kAuto)->bytes.size(), kMaxInputBytes);
  close(most);
  const int more = FileWith(std::string(kMaxInputBytes + 1, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(Gather(more, InputMode::kAuto).status()));
  close(more);
}

TEST_F(InputTest, AbandoningEndsTheWait) {
  for (const InputMode mode : {InputMode::kAuto, InputMode::kWait}) {
    auto input = std::async(std::launch::async, [&] { return Gather(pipe_[0], mode); });
    const uint64_t one = 1;
    ASSERT_EQ(write(abandon_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    EXPECT_TRUE(absl::IsCancelled(input.get().status()));
  }
}

TEST_F(InputTest, ADirectoryIsAnErrorInWords) {
  const int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto input = Gather(directory, InputMode::kAuto);
  EXPECT_EQ(input.status().message(), "cannot read stdin: Is a directory");
  close(directory);
}

}  // namespace
}  // namespace bridge::cli
