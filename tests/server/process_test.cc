// SPDX-License-Identifier: Apache-2.0
//
// sandbox_bridge as whoever runs it sees it: exit codes, stderr, signals, a hardened environment.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/version.h"
#include "bridge/server/server.h"
#include "tests/server/bridge_process.h"
#include "tests/server/http_get.h"
#include "tests/server/raw_call.h"
#include "tests/server/server_fixture.h"
#include "tests/server/temp_folder.h"
#include "tests/server/test_certs.h"

namespace bridge::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr milliseconds kTwoSeconds{2000};

// Arguments of a bridge that starts.
std::vector<std::string> Good(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--listen=127.0.0.1:0", "--upstream=http://127.0.0.1:1"});
  return more;
}

bool Answers(const std::string& address) {
  return Call(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())).ok();
}

bool ExitedWith(const std::optional<int>& status, int code) {
  return status.has_value() && WIFEXITED(*status) && WEXITSTATUS(*status) == code;
}

std::string FileText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Can this machine do what `wrapper` does? Not every container lets us.
bool Works(std::vector<std::string> wrapper) {
  std::string command;
  for (const std::string& word : wrapper) command += "'" + word + "' ";
  return std::system((command + "true 2>/dev/null").c_str()) == 0;
}

// ---- start

// DEP-05: each with one line that says what to change.
TEST(Process, AStartThatFailsSaysWhyInOneLine) {
  TempFolder folder;
  TestCa ca("ca");
  const PemPair pair = ca.Issue("localhost");
  const std::string cert = folder.Write("cert", pair.cert), bad = folder.Write("bad", "bad");
  TestServer taken;
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  for (const Case& c : {
           Case{{}, "upstream: is not set"},
           Case{{"--upstream="}, "upstream: is not set"},
           Case{{"--upstream=ftp://h"}, "upstream: "},
           Case{{"--upstream=http://u:p@h"}, "upstream: "},
           Case{Good({"--listen=" + taken.address()}), "Address already in use"},
           Case{Good({"--listen=192.0.2.1:5", "--insecure_public"}),
                "192.0.2.1:5: Cannot assign requested address"},
           Case{Good({"--listen=nonsense"}), "listen: wants HOST:PORT"},
           Case{Good({"--listen=0.0.0.0:0"}), "--insecure_public"},
           Case{Good({"--tls_cert_file=" + cert}), "tls_key_file: is not set"},
           Case{Good({"--tls_cert_file=" + cert, "--tls_key_file=/no/such"}),
                "tls_key_file: cannot read '/no/such'"},
           Case{Good({"--auth_tokens_file=" + bad}), "auth_tokens_file: line 1"},
           Case{Good({"--api_key_file=/no/such"}), "api_key_file: cannot read"},
           Case{Good({"--admin_listen=" + taken.address()}), "admin_listen: cannot listen"},
           Case{Good({"--log_level=loud"}), "log_level: is not debug"},
           Case{Good({"--log_calls=some"}), "log_calls: is not none"},
           Case{Good({"--grace=-1s"}), "grace: is negative"},
           Case{Good({"--max_streams=-1"}), "max_streams: is negative"},
           Case{Good({"--reload_interval=1ms"}), "reload_interval: is under a second"},
           Case{Good({"argument"}), "no flag"},
           Case{Good({"--no_such_flag=1"}), "no_such_flag"},
           Case{Good({"--grace=soon"}), "grace"},
           Case{{"--listen=127.0.0.1:0", "--upstream=local", "--local_isolation=magic"},
                "local_isolation: is not overlay"},
       }) {
    BridgeProcess process({.arguments = c.arguments});
    const auto status = process.Wait(kTwoSeconds);
    ASSERT_TRUE(ExitedWith(status, 1)) << c.says << "\n" << process.log();
    const std::string log = process.log();
    EXPECT_THAT(log, HasSubstr(c.says));
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_EQ(log.back(), '\n');
  }
}

TEST(Process, TheEnvironmentStandsInForFlagsAndTheCommandLineWins) {
  BridgeProcess process(
      {.arguments = {"--log_level=error"},
       .environment = {"SANDBOX_BRIDGE_LISTEN=127.0.0.1:0",
                       "SANDBOX_BRIDGE_UPSTREAM=http://127.0.0.1:1",
                       "SANDBOX_BRIDGE_LOG_LEVEL=nonsense-that-is-overruled",
                       "SANDBOX_BRIDGE_ADMIN_LISTEN=", "SANDBOX_BRIDGE_GRACE=1s"}});
  EXPECT_EQ(process.Wait(milliseconds(300)), std::nullopt) << process.log();
  process.Signal(SIGTERM);
  EXPECT_TRUE(ExitedWith(process.Wait(kTwoSeconds), 0));
  EXPECT_EQ(process.log(), "");  // nothing of level error

  BridgeProcess bad({.arguments = Good(), .environment = {"SANDBOX_BRIDGE_GRACE=soon"}});
  EXPECT_TRUE(ExitedWith(bad.Wait(kTwoSeconds), 1));
  EXPECT_THAT(bad.log(), HasSubstr("SANDBOX_BRIDGE_GRACE"));
}

TEST(Process, AKeyFromTheEnvironmentIsNotSeenByOthers) {
  BridgeProcess process(
      {.arguments = Good(), .environment = {"SANDBOX_BRIDGE_API_KEY=canary-key"}});
  ASSERT_NE(process.WaitForAddress(), "") << process.log();
  const std::string proc = "/proc/" + std::to_string(process.pid()) + "/";
  EXPECT_THAT(FileText(proc + "environ"), HasSubstr("SANDBOX_BRIDGE_API_KEY"));
  EXPECT_THAT(FileText(proc + "environ"), Not(HasSubstr("canary")));
  EXPECT_THAT(FileText(proc + "cmdline"), Not(HasSubstr("canary")));
  process.Signal(SIGUSR1);
  process.Signal(SIGTERM);
  EXPECT_TRUE(ExitedWith(process.Wait(kTwoSeconds), 0));
  EXPECT_THAT(process.log(), Not(HasSubstr("canary")));

  BridgeProcess both({.arguments = Good({"--api_key_file=/dev/null"}),
                      .environment = {"SANDBOX_BRIDGE_API_KEY=canary-key"}});
  EXPECT_TRUE(ExitedWith(both.Wait(kTwoSeconds), 1));
  EXPECT_THAT(both.log(), HasSubstr("only one of them can be meant"));
  EXPECT_THAT(both.log(), Not(HasSubstr("canary")));
}

// What the program prints on stdout when it is asked for something else than to serve.
std::string Printed(const std::string& flag) {
  std::FILE* pipe = popen((BridgeProcess::Path() + " " + flag).c_str(), "r");
  std::string text;
  if (pipe == nullptr) return text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

TEST(Process, TellsItsVersion) {
  EXPECT_EQ(Printed("--version"), std::string("sandbox_bridge ") + kVersion + "\n");
}

TEST(Process, HelpListsTheFlags) {
  const std::string help = Printed("--help");
  for (const char* flag : {"--upstream", "--listen", "--health_listen", "--api_key_file"}) {
    EXPECT_THAT(help, HasSubstr(std::string(flag) + " (")) << help;
  }
  EXPECT_THAT(help, Not(HasSubstr("--flagfile (")));  // those of the library are in --helpfull
}

// ---- signals

TEST(Process, EndsCleanlyBySigtermAndSigint) {
  for (const int signal : {SIGTERM, SIGINT}) {
    BridgeProcess process({.arguments = Good()});
    const std::string address = process.WaitForAddress();
    ASSERT_NE(address, "") << process.log();
    EXPECT_TRUE(Answers(address));
    process.Signal(signal);
    EXPECT_TRUE(ExitedWith(process.Wait(kTwoSeconds), 0)) << process.log();
    EXPECT_THAT(process.log(), HasSubstr("msg=stopped calls_left=0"));
  }
}

// DEP-04: at whatever moment of its start.
TEST(Process, EndsWhenTheSignalComesDuringItsStart) {
  for (const int delay : {0, 1, 3, 10, 20, 50, 200}) {
    BridgeProcess process({.arguments = Good()});
    std::this_thread::sleep_for(milliseconds(delay));
    process.Signal(SIGTERM);
    const auto status = process.Wait(kTwoSeconds);
    ASSERT_TRUE(status.has_value()) << delay << " ms: still there\n" << process.log();
    // Before its first line of code the system ends it.
    EXPECT_TRUE(ExitedWith(status, 0) || (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGTERM))
        << delay << " ms: status " << *status << "\n"
        << process.log();
  }
}

TEST(Process, SighupReadsFilesAgainAndSigusr1ListsCalls) {
  TempFolder folder;
  const std::string key = folder.Write("key", "one\n");
  BridgeProcess process({.arguments = Good({"--api_key_file=" + key, "--reload_interval=1h"})});
  const std::string address = process.WaitForAddress();
  ASSERT_NE(address, "") << process.log();
  folder.Write("key", "two\n");
  process.Signal(SIGHUP);
  EXPECT_TRUE(process.WaitForLog("msg=\"file read again\" flag=api_key_file"));
  process.Signal(SIGUSR1);
  EXPECT_TRUE(process.WaitForLog("msg=\"running calls\" count=0"));
  EXPECT_TRUE(Answers(address));
}

// Its supervisor's log reader died: it serves on.
TEST(Process, SurvivesThatNobodyReadsItsLog) {
  TempFolder folder;
  const std::string socket = folder.path("s");
  BridgeProcess process(
      {.arguments = {"--listen=unix:" + socket, "--upstream=http://127.0.0.1:1", "--log_calls=all"},
       .close_stderr = true});
  EXPECT_TRUE(Eventually([&] { return Answers("unix:" + socket); }));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Answers("unix:" + socket));
  process.Signal(SIGPIPE);
  EXPECT_TRUE(Answers("unix:" + socket));
  process.Signal(SIGTERM);
  EXPECT_TRUE(ExitedWith(process.Wait(kTwoSeconds), 0));
}

// DEP-01, with nothing running: not ready at once, open for the drain delay, alive all the time.
TEST(Process, StaysOpenForTheDrainDelay) {
  BridgeProcess process(
      {.arguments = Good({"--admin_listen=127.0.0.1:0", "--drain_delay=1500ms"})});
  const std::string address = process.WaitForAddress();
  const int admin = process.WaitForAdminPort();
  ASSERT_NE(address, "") << process.log();
  auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  ASSERT_EQ(HealthOf(channel, ""), 1);
  ASSERT_THAT(HttpGet(admin, "/readyz"), StartsWith("HTTP/1.1 200"));

  process.Signal(SIGTERM);
  const auto sent = std::chrono::steady_clock::now();
  while (HealthOf(channel, "") != 2) {
  }
  EXPECT_THAT(HttpGet(admin, "/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_LT(std::chrono::steady_clock::now() - sent, milliseconds(100));
  EXPECT_THAT(HttpGet(admin, "/healthz"), StartsWith("HTTP/1.1 200"));
  while (std::chrono::steady_clock::now() - sent < milliseconds(1200)) {
    // Old connections and new ones.
    ASSERT_TRUE(Call(channel).ok());
    ASSERT_THAT(HttpGet(admin, "/healthz"), StartsWith("HTTP/1.1 200"));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(ExitedWith(process.Wait(kTwoSeconds), 0)) << process.log();
  EXPECT_GE(std::chrono::steady_clock::now() - sent, milliseconds(1500));
}

TEST(Process, ASecondSignalEndsItAtOnce) {
  BridgeProcess process({.arguments = Good({"--drain_delay=1h"})});
  ASSERT_NE(process.WaitForAddress(), "") << process.log();
  process.Signal(SIGTERM);
  ASSERT_TRUE(process.WaitForLog("msg=draining"));
  EXPECT_EQ(process.Wait(milliseconds(100)), std::nullopt);
  process.Signal(SIGTERM);
  EXPECT_TRUE(ExitedWith(process.Wait(kTwoSeconds), 143));
}

// ---- where it has to live

TEST(Process, WorksAsPid1) {
  const std::vector<std::string> wrapper = {"unshare", "--pid", "--fork", "--mount-proc",
                                            "--kill-child"};
  if (!Works(wrapper)) GTEST_SKIP() << "no PID namespaces here";
  TempFolder folder;
  BridgeProcess process(
      {.wrapper = wrapper, .arguments = Good(), .environment = {"PATH=/usr/bin"}});
  const std::string address = process.WaitForAddress();
  ASSERT_NE(address, "") << process.log();
  EXPECT_TRUE(Answers(address));
  // The bridge is the child of unshare.
  const std::string children = FileText("/proc/" + std::to_string(process.pid()) + "/task/" +
                                        std::to_string(process.pid()) + "/children");
  const int inner = std::atoi(children.c_str());
  ASSERT_GT(inner, 0);
  EXPECT_THAT(FileText("/proc/" + std::to_string(inner) + "/status"),
              ::testing::ContainsRegex("NSpid:\t[0-9]+\t1\n"));
  ::kill(inner, SIGTERM);
  EXPECT_TRUE(ExitedWith(process.Wait(kTwoSeconds), 0)) << process.log();
}

// A supervisor may close the standard streams: what is opened must not get their numbers.
TEST(Process, WorksWithStandardStreamsClosed) {
  BridgeProcess process({.wrapper = {"/bin/sh", "-c", "exec \"$0\" \"$@\" <&- >&-"},
                         .arguments = Good(),
                         .environment = {"PATH=/usr/bin"}});
  const std::string address = process.WaitForAddress();
  ASSERT_NE(address, "") << process.log();
  EXPECT_TRUE(Answers(address));
  for (const char* fd : {"0", "1"}) {
    std::error_code error;
    const auto held = std::filesystem::read_symlink(
        "/proc/" + std::to_string(process.pid()) + "/fd/" + fd, error);
    EXPECT_EQ(held, "/") << fd << ": " << error.message();
  }
}

// DEP-07: an ordinary user, nothing to write, no HOME, no capabilities.
TEST(Process, WorksWithAReadOnlyRootAndNothingElse) {
  const std::vector<std::string> wrapper = {"bwrap",
                                            "--ro-bind",
                                            "/",
                                            "/",
                                            "--proc",
                                            "/proc",
                                            "--dev",
                                            "/dev",
                                            "--unshare-user",
                                            "--uid",
                                            "65532",
                                            "--gid",
                                            "65532",
                                            "--clearenv",
                                            "--cap-drop",
                                            "ALL",
                                            "--die-with-parent"};
  if (!Works(wrapper)) GTEST_SKIP() << "no user namespaces here";
  BridgeProcess process({.wrapper = wrapper,
                         .arguments = Good({"--admin_listen=127.0.0.1:0"}),
                         .environment = {"PATH=/usr/bin"}});
  const std::string address = process.WaitForAddress();
  ASSERT_NE(address, "") << process.log();
  EXPECT_TRUE(Answers(address));
  EXPECT_THAT(HttpGet(process.WaitForAdminPort(), "/healthz"), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace bridge::testing
