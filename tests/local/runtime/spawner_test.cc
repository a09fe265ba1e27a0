// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/spawner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace bridge::local::runtime {
namespace {

using ::testing::HasSubstr;

// Runs a shell command and returns what it prints.
std::string Output(Spawner& spawner, const std::string& script,
                   std::vector<std::pair<int, int>> fds = {}, std::vector<std::string> env = {}) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  fds.emplace_back(ends[1], STDOUT_FILENO);
  const auto pid = spawner.Spawn({{"sh", "-c", script}, std::move(env), std::move(fds)});
  EXPECT_TRUE(pid.ok()) << pid.status();
  close(ends[1]);
  std::string out;
  std::array<char, 1000> bytes;
  ssize_t n = 0;
  while ((n = read(ends[0], bytes.data(), bytes.size())) > 0) {
    out.append(bytes.data(), static_cast<size_t>(n));
  }
  close(ends[0]);
  if (pid.ok()) waitpid(*pid, nullptr, 0);
  return out;
}

TEST(Spawner, PassesOnlyTheGivenDescriptors) {
  Spawner spawner;
  const int leak = open("/dev/null", O_RDONLY);  // without close-on-exec
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(write(ends[1], "hello", 5), 5);
  close(ends[1]);
  // The target numbers overlap the sources.
  const std::string out =
      Output(spawner, "cat <&4; ls /proc/self/fd | tr '\\n' ' '", {{ends[0], 4}, {leak, 3}});
  EXPECT_THAT(out, HasSubstr("hello"));
  EXPECT_EQ(out.find(" " + std::to_string(leak + 100) + " "), std::string::npos);
  EXPECT_THAT(out, HasSubstr("hello0 1 2 3 4 5 ")) << "5 is the directory itself";
  close(leak);
  close(ends[0]);
}

TEST(Spawner, GivesAnEmptyInputAndASessionOfItsOwn) {
  Spawner spawner;
  EXPECT_EQ(Output(spawner, "cat"), "");
  // Fields 1, 5 and 6 of stat: the process leads its group and its session.
  EXPECT_EQ(Output(spawner,
                   "read a b c d e f rest < /proc/self/stat; "
                   "test $e = $f && echo session",
                   {}, {"PATH=/usr/bin:/bin"}),
            "session\n");
}

TEST(Spawner, ResetsSignals) {
  Spawner spawner;
  signal(SIGPIPE, SIG_IGN);
  const std::string out =
      Output(spawner, "grep SigIgn /proc/self/status", {}, {"PATH=/usr/bin:/bin"});
  signal(SIGPIPE, SIG_DFL);
  const unsigned long ignored = std::strtoul(out.c_str() + 7, nullptr, 16);
  EXPECT_EQ(ignored & (1UL << (SIGPIPE - 1)), 0u) << out;
}

TEST(Spawner, SaysWhyNot) {
  Spawner spawner;
  EXPECT_THAT(std::string(spawner.Spawn({{"/nonexistent/program"}, {}, {}}).status().message()),
              HasSubstr("No such file"));
  const auto long_one = spawner.Spawn({{"sh", "-c", std::string(200'000, 'x')}, {}, {}});
  EXPECT_TRUE(absl::IsResourceExhausted(long_one.status())) << long_one.status();
}

}  // namespace
}  // namespace bridge::local::runtime
