// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string>
#include <thread>

#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

// Both ends of a pipe; closed when it goes.
struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(fds.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    close(fds[1]);
  }
  void CloseReader() {
    if (fds[0] >= 0) close(fds[0]);
    fds[0] = -1;
  }
  std::array<int, 2> fds = {-1, -1};
};

std::string ReadAll(int fd, size_t size) {
  std::string bytes;
  std::array<char, 65536> buffer;
  while (bytes.size() < size) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) break;
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
  return bytes;
}

class StreamsTest : public ::testing::Test {
 protected:
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }
};

TEST_F(StreamsTest, BytesGoOutAsTheyAre) {
  const int file = FileWith("");
  Streams streams(-1, file, -1);
  EXPECT_TRUE(streams.Out(std::string("a\r\n\377b\0c", 7)).ok());
  EXPECT_TRUE(streams.Out("").ok());
  EXPECT_EQ(ContentOf(file), std::string("a\r\n\377b\0c", 7));
  close(file);
}

TEST_F(StreamsTest, MoreThanAPipeHoldsArrivesWhole) {
  Pipe pipe;
  Streams streams(-1, pipe.fds[1], -1);
  std::string sent;
  for (int i = 0; i < 300'000; ++i) sent += static_cast<char>(i * 7);
  auto received = std::async(std::launch::async, ReadAll, pipe.fds[0], sent.size());
  EXPECT_TRUE(streams.Out(sent).ok());
  EXPECT_EQ(received.get(), sent);
}

TEST_F(StreamsTest, ANonBlockingPipeArrivesWholeToo) {
  Pipe pipe;
  fcntl(pipe.fds[1], F_SETFL, O_NONBLOCK);
  Streams streams(-1, pipe.fds[1], -1);
  const std::string sent(300'000, 'x');
  auto received = std::async(std::launch::async, ReadAll, pipe.fds[0], sent.size());
  EXPECT_TRUE(streams.Out(sent).ok());
  EXPECT_EQ(received.get(), sent);
}

TEST_F(StreamsTest, AReaderThatWentAwayIsAborted) {
  Pipe pipe;
  pipe.CloseReader();
  Streams streams(-1, pipe.fds[1], -1);
  EXPECT_TRUE(absl::IsAborted(streams.Out("x")));
}

TEST_F(StreamsTest, AbandonEndsAWriteThatWaits) {
  Pipe pipe;
  Streams streams(-1, pipe.fds[1], -1);
  auto writing =
      std::async(std::launch::async, [&] { return streams.Out(std::string(1 << 20, 'x')); });
  ReadAll(pipe.fds[0], 1);  // it has begun
  streams.Abandon();
  EXPECT_TRUE(absl::IsCancelled(writing.get()));
  EXPECT_TRUE(absl::IsCancelled(streams.Out("later")));
}

TEST_F(StreamsTest, NotesComeThroughAfterAbandon) {
  const int file = FileWith("");
  Streams streams(-1, -1, file);
  streams.Abandon();
  streams.Note("still here");
  EXPECT_EQ(ContentOf(file), "sbx: still here\n");
  close(file);
}

TEST_F(StreamsTest, ABadDescriptorIsAnErrorInWords) {
  Streams streams(-1, 12345, -1);
  const absl::Status status = streams.Out("x");
  EXPECT_TRUE(absl::IsUnknown(status));
  EXPECT_EQ(status.message(), "cannot write output: Bad file descriptor");
}

TEST_F(StreamsTest, AFullDiskIsAnErrorInWords) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
  Streams streams(-1, full, -1);
  EXPECT_EQ(streams.Out("x").message(), "cannot write output: No space left on device");
  close(full);
}

TEST_F(StreamsTest, FlagsOfTheDescriptorStayAsTheyWere) {
  Pipe pipe;
  const int before = fcntl(pipe.fds[1], F_GETFL);
  Streams streams(-1, pipe.fds[1], -1);
  EXPECT_TRUE(streams.Out("x").ok());
  EXPECT_EQ(fcntl(pipe.fds[1], F_GETFL), before);
}

}  // namespace
}  // namespace bridge::cli
