// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace bridge::local::execd {
namespace {

FlagResult Parse(std::vector<const char*> arguments, Flags* flags) {
  arguments.insert(arguments.begin(), "execd");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data(), flags);
}

TEST(Flags, Defaults) {
  Flags flags;
  ASSERT_EQ(Parse({}, &flags).error, "");
  const DaemonOptions options = flags.ToOptions();
  EXPECT_EQ(options.server.host, "0.0.0.0");
  EXPECT_EQ(options.server.port, 44772);
  EXPECT_EQ(options.known_port, 44772);
  EXPECT_EQ(options.habits.name, "current");
  EXPECT_EQ(options.habits.linger, absl::Milliseconds(200));
  EXPECT_EQ(options.access_token, "");
}

// How the OpenSandbox server starts the image only to copy the file out of it.
TEST(Flags, PlainArgumentsMeanExitAtOnce) {
  Flags flags;
  EXPECT_TRUE(Parse({"tail", "-f", "/dev/null"}, &flags).exit_at_once);
  EXPECT_TRUE(Parse({"--port", "1", "tail"}, &flags).exit_at_once);
  EXPECT_FALSE(Parse({"--port", "1"}, &flags).exit_at_once);
}

TEST(Flags, BothSpellings) {
  Flags flags;
  ASSERT_EQ(Parse({"-port=5", "--access-token", "tok", "--compat=1.1.0", "--log-level", "3",
                   "--jupyter-host=x", "--listen=127.0.0.1:0", "--port-file=/p", "--listen-fd=7"},
                  &flags)
                .error,
            "");
  const DaemonOptions options = flags.ToOptions();
  EXPECT_EQ(options.known_port, 5);
  EXPECT_EQ(options.server.host, "127.0.0.1");
  EXPECT_EQ(options.server.port, 0);
  EXPECT_EQ(options.server.listen_fd, 7);
  EXPECT_EQ(options.access_token, "tok");
  EXPECT_EQ(options.habits.name, "1.1.0");
  EXPECT_EQ(options.habits.linger, absl::Seconds(1));
  EXPECT_EQ(flags.port_file, "/p");
}

TEST(Flags, Refusals) {
  Flags flags;
  EXPECT_EQ(Parse({"--nonsense"}, &flags).error, "unknown flag --nonsense");
  EXPECT_EQ(Parse({"--port"}, &flags).error, "--port needs a value");
  EXPECT_EQ(Parse({"--port=65536"}, &flags).error, "bad value for --port");
  EXPECT_EQ(Parse({"--port=x"}, &flags).error, "bad value for --port");
  EXPECT_EQ(Parse({"--compat=0.9"}, &flags).error, "bad value for --compat");
  EXPECT_EQ(Parse({"--listen=here"}, &flags).error, "bad value for --listen");
  EXPECT_EQ(Parse({"--graceful-shutdown-timeout=soon"}, &flags).error,
            "bad value for --graceful-shutdown-timeout");
}

TEST(Flags, TheLingerIsIndependentOfTheOrder) {
  Flags flags;
  ASSERT_EQ(Parse({"--graceful-shutdown-timeout=1m0.5s", "--compat=1.1.0"}, &flags).error, "");
  EXPECT_EQ(flags.ToOptions().habits.linger, absl::Milliseconds(60500));
}

TEST(Flags, EnvironmentChoosesTheHabits) {
  setenv("EXECD_COMPAT", "1.1.0", 1);
  setenv("EXECD_EXTRAS", "false", 1);
  Flags flags;
  const char* none[] = {"execd"};
  EXPECT_EQ(ParseFlags(1, none, &flags).error, "");
  EXPECT_EQ(flags.habits.name, "1.1.0");
  EXPECT_FALSE(flags.habits.extras);

  const char* given[] = {"execd", "--compat=current", "--extras=true"};
  EXPECT_EQ(ParseFlags(3, given, &flags).error, "") << "a flag wins";
  EXPECT_EQ(flags.habits.name, "current");
  EXPECT_TRUE(flags.habits.extras);

  setenv("EXECD_EXTRAS", "perhaps", 1);
  EXPECT_EQ(ParseFlags(1, none, &flags).error, "bad value of EXECD_EXTRAS");
  unsetenv("EXECD_EXTRAS");
  setenv("EXECD_COMPAT", "0.1", 1);
  EXPECT_EQ(ParseFlags(1, none, &flags).error, "bad value of EXECD_COMPAT");
  unsetenv("EXECD_COMPAT");
}

TEST(Flags, EnvironmentAndItsRank) {
  setenv("EXECD_ACCESS_TOKEN", "from-env", 1);
  setenv("EXECD_API_GRACE_SHUTDOWN", "300ms", 1);
  Flags flags;
  ASSERT_EQ(Parse({}, &flags).error, "");
  EXPECT_EQ(flags.access_token, "from-env");
  EXPECT_EQ(flags.ToOptions().habits.linger, absl::Milliseconds(300));
  ASSERT_EQ(Parse({"--access-token=flag", "--graceful-shutdown-timeout=1s"}, &flags).error, "");
  EXPECT_EQ(flags.access_token, "flag");
  EXPECT_EQ(flags.ToOptions().habits.linger, absl::Seconds(1));
  setenv("EXECD_API_GRACE_SHUTDOWN", "nonsense", 1);
  Flags other;
  ASSERT_EQ(Parse({}, &other).error, "");
  EXPECT_EQ(other.ToOptions().habits.linger, absl::Milliseconds(200));
  unsetenv("EXECD_ACCESS_TOKEN");
  unsetenv("EXECD_API_GRACE_SHUTDOWN");
}

}  // namespace
}  // namespace bridge::local::execd
