// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/local/execd/fake_stream.h"

namespace bridge::local::execd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr absl::Duration kLong = absl::Seconds(20);

constexpr char kInit[] = R"({"type":"init","text":"ID"})";
constexpr char kPing[] = R"({"type":"ping","text":"pong"})";
constexpr char kComplete[] = R"({"type":"execution_complete"})";

std::string Out(const std::string& text) { return R"({"type":"stdout","text":")" + text + "\"}"; }
std::string Err(const std::string& text) { return R"({"type":"stderr","text":")" + text + "\"}"; }
std::string Error(const std::string& value, const std::string& trace) {
  return R"({"type":"error","error":{"ename":"CommandExecError","evalue":")" + value +
         R"(","traceback":[")" + trace + R"("]}})";
}

class CommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    spool_ = testing::TempDir() + "/spool";
    std::filesystem::remove_all(spool_);
    std::filesystem::create_directories(spool_);
    setenv("TMPDIR", spool_.c_str(), 1);
    setenv("PATH", "/usr/bin:/bin", 1);
  }
  void TearDown() override { processes_.KillAll(kLong); }

  RunRequest Parse(const std::string& body) {
    RunRequest request;
    const auto refusal = ParseRunRequest(body, habits_, &request);
    EXPECT_FALSE(refusal.has_value()) << (refusal ? refusal->message : "");
    return request;
  }
  std::string Refusal(const std::string& body) {
    RunRequest request;
    const auto refusal = ParseRunRequest(body, habits_, &request);
    if (!refusal) return "";
    EXPECT_EQ(refusal->status, 400);
    EXPECT_EQ(refusal->code, kInvalidBody);
    return refusal->message;
  }
  // Runs to the end in this thread.
  std::vector<std::string> Run(const std::string& body) {
    FakeStream stream;
    EXPECT_FALSE(commands_.RunForeground(Parse(body), stream).has_value());
    last_id_ = stream.WaitForId();
    return stream.events();
  }
  std::string Status(const std::string& id) {
    std::string json;
    const auto error = commands_.Status(id, &json);
    return error ? error->message : json;
  }
  std::string LogsOf(const std::string& id, int64_t cursor) {
    Commands::Logs logs;
    const auto error = commands_.OpenLogs(id, cursor, &logs);
    if (error) return error->message;
    std::string out(static_cast<size_t>(logs.end - logs.begin), '\0');
    EXPECT_EQ(pread(logs.fd, out.data(), out.size(), logs.begin), static_cast<ssize_t>(out.size()));
    close(logs.fd);
    return out;
  }
  // Waits until the status has `text`.
  bool WaitForStatus(const std::string& id, const std::string& text) {
    const absl::Time end = absl::Now() + kLong;
    while (absl::Now() < end) {
      if (Status(id).find(text) != std::string::npos) return true;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return false;
  }

  Habits habits_ = kHabits110;
  std::string spool_;
  std::string last_id_;
  Processes processes_;
  Timer timer_;
  Commands commands_{processes_, timer_, habits_};
};

TEST_F(CommandsTest, ExitCodes) {
  EXPECT_THAT(Run(R"({"command":"echo hi"})"), ElementsAre(kInit, kPing, Out("hi"), kComplete));
  EXPECT_THAT(Run(R"({"command":"exit 3"})"),
              ElementsAre(kInit, kPing, Error("3", "exit status 3")));
  EXPECT_THAT(Run(R"({"command":"kill -9 $$"})"),
              ElementsAre(kInit, kPing, Error("-1", "signal: killed")));
  EXPECT_THAT(Status(last_id_), HasSubstr(R"("running":false,"exit_code":-1,"error":"signal: )"));
}

TEST_F(CommandsTest, OutputIsCutIntoLines) {
  EXPECT_THAT(
      Run(R"({"command":"printf 'a\\r\\n\\nb'; printf 'x\\377\\n' >&2"})"),
      ElementsAre(kInit, kPing, Err("x\\ufffd"), Out("a"), Out("\\n"), Out("b"), kComplete));
}

TEST_F(CommandsTest, OutputArrivesWhileItRuns) {
  FakeStream stream;
  std::thread runner(
      [&] { commands_.RunForeground(Parse(R"({"command":"echo first; sleep 100"})"), stream); });
  EXPECT_TRUE(stream.WaitFor("first"));
  EXPECT_FALSE(commands_.Interrupt(stream.WaitForId()).has_value());
  runner.join();
  EXPECT_THAT(stream.events().back(), Error("-1", "signal: terminated"));
}

TEST_F(CommandsTest, StartFailuresLeaveNoRecord) {
  RunRequest request = Parse(R"({"command":"true"})");
  request.env["BIG"] = std::string(200'000, 'x');
  FakeStream stream;
  EXPECT_FALSE(commands_.RunForeground(request, stream).has_value());
  const std::string text = "fork/exec /usr/bin/bash: argument list too long";
  EXPECT_THAT(stream.events(), ElementsAre(kInit, kPing, Error(text, text)));
  EXPECT_EQ(Status(stream.WaitForId()), "command not found: " + stream.WaitForId());
}

TEST_F(CommandsTest, TimeoutKillsTheGroup) {
  EXPECT_THAT(Run(R"({"command":"echo start; sleep 100; echo never","timeout":50})"),
              ElementsAre(kInit, kPing, Out("start"), Error("-1", "signal: killed")));
}

TEST_F(CommandsTest, TheStreamLingers) {
  FakeStream stream;
  commands_.RunForeground(Parse(R"({"command":"true"})"), stream);
  EXPECT_GT(stream.slept(), absl::Milliseconds(900));
  EXPECT_LE(stream.slept(), absl::Seconds(1));
}

TEST_F(CommandsTest, AVanishedClientStopsNothing) {
  FakeStream stream;
  stream.Leave();
  commands_.RunForeground(Parse("{\"command\":\"echo x > " + spool_ + "/survived\"}"), stream);
  EXPECT_EQ(access((spool_ + "/survived").c_str(), F_OK), 0);
  EXPECT_THAT(stream.events(), testing::IsEmpty());
}

TEST_F(CommandsTest, SpoolsStayInTheOldVersion) {
  Run(R"({"command":"printf abc"})");
  EXPECT_EQ(std::filesystem::file_size(spool_ + "/" + last_id_ + ".stdout"), 3u);
  EXPECT_EQ(std::filesystem::file_size(spool_ + "/" + last_id_ + ".stderr"), 0u);
}

TEST_F(CommandsTest, NoSpoolIsAnErrorBeforeTheStream) {
  setenv("TMPDIR", (spool_ + "/none").c_str(), 1);
  FakeStream stream;
  const auto error = commands_.RunForeground(Parse(R"({"command":"true"})"), stream);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status, 500);
  EXPECT_EQ(stream.raw(), "");
}

TEST_F(CommandsTest, Background) {
  FakeStream stream;
  ASSERT_FALSE(commands_.RunBackground(
      Parse(
          R"({"command":"printf 'a\\377\\0b\\r\\nc'; echo err >&2; read x; exit 7","background":true})"),
      stream));
  const std::string id = stream.WaitForId();
  EXPECT_THAT(stream.events(), ElementsAre(kInit, kPing, kComplete));
  ASSERT_TRUE(WaitForStatus(id, "\"exit_code\":7"));
  EXPECT_THAT(Status(id), MatchesRegex(R"(\{"id":"[0-9a-f]+","content":"printf.*",)"
                                       R"("running":false,"exit_code":7,"error":"exit status 7",)"
                                       R"("started_at":".*Z","finished_at":".*Z"\})"));
  EXPECT_EQ(LogsOf(id, 0), std::string("a\xff\0b\r\ncerr\n", 11));
  EXPECT_EQ(LogsOf(id, 5), "\ncerr\n");
  EXPECT_EQ(LogsOf(id, 11), "");
  EXPECT_EQ(LogsOf(id, -1),
            "error seek file: seek " + spool_ + "/" + id + ".output: invalid argument");
  Commands::Logs logs;
  ASSERT_FALSE(commands_.OpenLogs(id, 1000, &logs));
  EXPECT_EQ(logs.end, 1000);  // beyond the end: echoed
  close(logs.fd);
}

TEST_F(CommandsTest, ABackgroundCommandIsUnknownForAWhile) {
  FakeStream stream;
  std::thread starter([&] {
    commands_.RunBackground(Parse(R"({"command":"sleep 100","background":true})"), stream);
  });
  const std::string id = stream.WaitForId();
  EXPECT_EQ(Status(id), "command not found: " + id);
  EXPECT_TRUE(WaitForStatus(id, "\"running\":true"));
  starter.join();
}

TEST_F(CommandsTest, BackgroundStartFailure) {
  RunRequest request = Parse(R"({"command":"true","background":true})");
  request.env["BIG"] = std::string(200'000, 'x');
  FakeStream stream;
  EXPECT_FALSE(commands_.RunBackground(request, stream).has_value());
  EXPECT_THAT(stream.events(),
              ElementsAre(kInit, kPing,
                          R"({"code":"RUNTIME_ERROR","message":"error running commands failed to )"
                          R"(start commands: fork/exec /usr/bin/bash: argument list too long"})"));
  EXPECT_THAT(stream.raw(), Not(testing::EndsWith("\n")));
  EXPECT_EQ(stream.slept(), absl::ZeroDuration());
  EXPECT_THAT(Status(stream.WaitForId()), HasSubstr(R"("running":false,"exit_code":255)"));
  EXPECT_EQ(LogsOf(stream.WaitForId(), 0), "");
}

TEST_F(CommandsTest, BackgroundTimeout) {
  FakeStream stream;
  commands_.RunBackground(Parse(R"({"command":"sleep 100","background":true,"timeout":20})"),
                          stream);
  EXPECT_TRUE(WaitForStatus(stream.WaitForId(), "\"error\":\"signal: killed\""));
}

TEST_F(CommandsTest, InterruptOfWhatDoesNotRun) {
  Run(R"({"command":"true"})");
  EXPECT_EQ(commands_.Interrupt(last_id_)->message,
            "error interruptting code context. command session " + last_id_ + " is not running");
  EXPECT_EQ(commands_.Interrupt("nope")->message,
            "error interruptting code context. no such session");
  EXPECT_EQ(LogsOf(last_id_, 0), "command " + last_id_ + " is not running in background");
}

TEST_F(CommandsTest, InterruptKillsWhatIgnoresIt) {
  FakeStream stream;
  std::thread runner([&] {
    commands_.RunForeground(
        Parse(R"({"command":"trap '' TERM; echo up; while :; do sleep 0.1; done"})"), stream);
  });
  ASSERT_TRUE(stream.WaitFor("up"));
  const absl::Time begin = absl::Now();
  EXPECT_FALSE(commands_.Interrupt(stream.WaitForId()).has_value());
  EXPECT_GE(absl::Now() - begin, absl::Seconds(3));
  runner.join();
  EXPECT_EQ(stream.events().back(), Error("-1", "signal: killed"));
}

TEST_F(CommandsTest, BusyWhileOneRuns) {
  EXPECT_FALSE(commands_.Busy());
  FakeStream stream;
  commands_.RunBackground(Parse(R"({"command":"sleep 100","background":true})"), stream);
  EXPECT_TRUE(commands_.Busy());
  ASSERT_TRUE(WaitForStatus(stream.WaitForId(), "\"running\":true"));
  commands_.Interrupt(stream.WaitForId());
  EXPECT_FALSE(commands_.Busy());
}

TEST_F(CommandsTest, Refusals) {
  const std::string invalid = "invalid request, validation error ";
  EXPECT_EQ(Refusal("{}"), invalid +
                               "Key: 'RunCommandRequest.Command' Error:Field validation for "
                               "'Command' failed on the 'required' tag");
  EXPECT_EQ(Refusal(R"({"argv":["x"]})"), Refusal("{}"));
  EXPECT_EQ(Refusal(R"({"command":"x","timeout":-5})"),
            invalid +
                "Key: 'RunCommandRequest.TimeoutMs' Error:Field validation for 'TimeoutMs' failed "
                "on the 'gte' tag");
  EXPECT_EQ(Refusal(R"({"command":"x","gid":1})"),
            invalid + "uid is required when gid is provided");
  EXPECT_EQ(Refusal(R"({"command":"x","cwd":"/nope/x"})"),
            invalid +
                "working directory does not exist: /nope/x: stat /nope/x: no such file or "
                "directory");
  EXPECT_EQ(Refusal(R"({"command":"x","cwd":"/etc/passwd"})"),
            invalid + "working directory path is not a directory: /etc/passwd");
  EXPECT_EQ(Refusal(R"({"command":"x","cwd":"/tmp/$NOT_DEFINED_X"})"),
            invalid +
                "cannot resolve working directory \"/tmp/$NOT_DEFINED_X\": path references "
                "undefined environment variables: NOT_DEFINED_X");
  EXPECT_EQ(Refusal("{x"),
            "error parsing request, MAYBE invalid body format. invalid character "
            "'x' looking for beginning of object key string");
  EXPECT_EQ(Refusal(R"({"command":"x","argv":7})"), "");
}

// ---- the newer version

class CurrentCommandsTest : public CommandsTest {
 protected:
  CurrentCommandsTest() { habits_ = kHabitsCurrent; }
  Commands current_{processes_, timer_, kHabitsCurrent};
};

TEST_F(CurrentCommandsTest, ArgvRunsWithoutAShell) {
  FakeStream stream;
  current_.RunForeground(Parse(R"({"argv":["echo","a  b","$HOME"]})"), stream);
  EXPECT_THAT(stream.events(), ElementsAre(kInit, kPing, Out("a  b $HOME"), kComplete));
  std::string json;
  ASSERT_FALSE(current_.Status(stream.WaitForId(), &json));
  EXPECT_THAT(json, HasSubstr(R"("content":"echo a  b $HOME")"));
}

TEST_F(CurrentCommandsTest, ArgvIsLookedUpInTheRequestsPath) {
  FakeStream stream;
  current_.RunForeground(Parse(R"({"argv":["echo"],"envs":{"PATH":"/nowhere"}})"), stream);
  const std::string text = "exec: \\\"echo\\\": executable file not found in $PATH";
  EXPECT_THAT(stream.events(), ElementsAre(kInit, kPing, Error(text, text)));
}

TEST_F(CurrentCommandsTest, ExactlyOneOfCommandAndArgv) {
  const std::string message =
      "invalid request, validation error exactly one of command and argv is required";
  EXPECT_EQ(Refusal("{}"), message);
  EXPECT_EQ(Refusal(R"({"command":"x","argv":["x"]})"), message);
  EXPECT_NE(Refusal(R"({"argv":[""]})"), "");
  EXPECT_NE(Refusal(R"({"command":"x","argv":7})"), "");
}

TEST_F(CurrentCommandsTest, SpoolsArePrivateAndGoAway) {
  FakeStream stream;
  current_.RunForeground(Parse(R"({"command":"printf abc; stat -Lc %F /proc/self/fd/1"})"), stream);
  EXPECT_THAT(stream.events(), ElementsAre(kInit, kPing, Out("abcregular file"), kComplete));
  const std::string directory = spool_ + "/opensandbox-execd";
  struct stat info;
  ASSERT_EQ(stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_LE(stream.slept(), absl::Milliseconds(200));
}

}  // namespace
}  // namespace bridge::local::execd
