// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
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
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPing[] = R"({"type":"ping","text":"pong"})";
constexpr char kComplete[] = R"({"type":"execution_complete"})";

std::string Out(const std::string& text) { return R"({"type":"stdout","text":")" + text + "\"}"; }
std::string Error(const std::string& value, const std::string& trace) {
  return R"({"type":"error","error":{"ename":"CommandExecError","evalue":")" + value +
         R"(","traceback":[")" + trace + R"("]}})";
}

class SessionsTest : public testing::Test {
 protected:
  void SetUp() override {
    tmp_ = testing::TempDir() + "/sessions";
    std::filesystem::remove_all(tmp_);
    std::filesystem::create_directories(tmp_);
    setenv("TMPDIR", tmp_.c_str(), 1);
    setenv("PATH", "/usr/bin:/bin", 1);
    ASSERT_FALSE(sessions_.Create("", &id_).has_value());
  }
  void TearDown() override { processes_.KillAll(absl::Seconds(20)); }

  std::string Init() const { return R"({"type":"init","text":")" + id_ + "\"}"; }
  // The events after init and ping, which are checked here.
  std::vector<std::string> Run(const std::string& body) {
    FakeStream stream;
    const auto error = sessions_.Run(id_, body, stream);
    std::vector<std::string> events = stream.events();
    if (error) return {error->message};
    EXPECT_GE(events.size(), 3u);
    EXPECT_EQ(events[0], Init());
    EXPECT_EQ(events[1], kPing);
    events.erase(events.begin(), events.begin() + 2);
    EXPECT_EQ(stream.slept(), absl::ZeroDuration());  // no linger
    return events;
  }

  std::string tmp_;
  std::string id_;
  Processes processes_;
  Timer timer_;
  Commands commands_{processes_, timer_, kHabits110};
  Sessions sessions_{processes_, timer_, commands_, kHabits110};
};

TEST_F(SessionsTest, MergesOutputAndDropsBlankLines) {
  EXPECT_THAT(Run(R"({"command":"echo o; echo e >&2; echo; echo x"})"),
              ElementsAre(Out("o"), Out("e"), Out("x"), kComplete));
  EXPECT_THAT(Run(R"({"command":"echo '__EXIT_CODE__:7'; echo after"})"),
              ElementsAre(Out("after"), kComplete));
}

TEST_F(SessionsTest, RemembersExportsAndDirectory) {
  EXPECT_THAT(Run(R"({"command":"export GV='two words'; local_v=1; cd /usr"})"),
              ElementsAre(kComplete));
  EXPECT_THAT(Run(R"({"command":"echo \"[$GV][$local_v]\"; pwd"})"),
              ElementsAre(Out("[two words][]"), Out("/usr"), kComplete));
  EXPECT_THAT(Run(R"({"command":"export LOST=1; exit 0"})"), ElementsAre(kComplete));
  EXPECT_THAT(Run(R"({"command":"echo \"[$LOST]\"; unset GV"})"),
              ElementsAre(Out("[]"), kComplete));
  EXPECT_THAT(Run(R"({"command":"echo \"[$GV]\""})"), ElementsAre(Out("[]"), kComplete));
  EXPECT_THAT(Run(R"({"command":"pwd","cwd":"/etc"})"), ElementsAre(Out("/etc"), kComplete));
  EXPECT_THAT(Run(R"({"command":"pwd"})"), ElementsAre(Out("/etc"), kComplete));
}

TEST_F(SessionsTest, ExitCodesAndSignals) {
  EXPECT_THAT(Run(R"({"command":"echo before; exit 5"})"),
              ElementsAre(Out("before"), Error("5", "exit status 5")));
  EXPECT_THAT(Run(R"({"command":"kill -9 $$"})"), ElementsAre(Error("-1", "signal: killed")));
}

TEST_F(SessionsTest, NothingIsLeftInTheTemporaryDirectory) {
  Run(R"({"command":"true"})");
  EXPECT_TRUE(std::filesystem::is_empty(tmp_));
}

TEST_F(SessionsTest, TimeoutKillsTheShellAndWaitsForTheOutputsEnd) {
  const absl::Time begin = absl::Now();
  EXPECT_THAT(Run(R"({"command":"echo a; sleep 0.4; echo b","timeout":50})"),
              ElementsAre("error running in session. timeout after 50ms"));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(350));  // the child held the output open
}

TEST_F(SessionsTest, InterruptClosesTheSession) {
  FakeStream stream;
  std::thread runner(
      [&] { sessions_.Run(id_, R"({"command":"echo go; exec sleep 100"})", stream); });
  ASSERT_TRUE(stream.WaitFor("go"));
  EXPECT_TRUE(sessions_.Close(id_));
  runner.join();
  EXPECT_EQ(stream.events().back(), Error("-1", "signal: killed"));
  EXPECT_FALSE(sessions_.Close(id_));
  EXPECT_THAT(Run(R"({"command":"echo x"})"),
              ElementsAre("error running in session. context not found"));
}

TEST_F(SessionsTest, AClientThatGoesTakesTheShellWithIt) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  FakeStream stream;
  stream.set_client_fd(pair[0]);
  std::thread runner([&] {
    sessions_.Run(id_, "{\"command\":\"echo started; sleep 0.2; echo x > " + tmp_ + "/alive\"}",
                  stream);
  });
  ASSERT_TRUE(stream.WaitFor("started"));
  close(pair[1]);
  runner.join();
  close(pair[0]);
  EXPECT_THAT(stream.events(), Not(testing::Contains(HasSubstr("execution_complete"))));
  absl::SleepFor(absl::Milliseconds(300));  // the time that the rest of the script would have taken
  EXPECT_NE(access((tmp_ + "/alive").c_str(), F_OK), 0);
}

TEST_F(SessionsTest, RunsAtTheSameTime) {
  FakeStream first;
  std::thread runner(
      [&] { sessions_.Run(id_, R"({"command":"echo one; exec sleep 100"})", first); });
  ASSERT_TRUE(first.WaitFor("one"));
  EXPECT_THAT(Run(R"({"command":"echo two"})"), ElementsAre(Out("two"), kComplete));
  sessions_.Close(id_);
  runner.join();
}

TEST_F(SessionsTest, SigintIsIgnoredUnlessACommandRuns) {
  const std::string look = R"({"command":"grep SigIgn /proc/self/status"})";
  EXPECT_THAT(Run(look)[0], HasSubstr("0000000000000002"));
  FakeStream stream;
  RunRequest request;
  ASSERT_FALSE(
      ParseRunRequest(R"({"command":"sleep 100","background":true})", kHabits110, &request));
  ASSERT_FALSE(commands_.RunBackground(request, stream));
  EXPECT_THAT(Run(look)[0], HasSubstr("0000000000000000"));
}

TEST_F(SessionsTest, Create) {
  std::string id;
  EXPECT_FALSE(sessions_.Create("{\"cwd\":\"" + tmp_ + "/made/here\"}", &id));
  EXPECT_TRUE(std::filesystem::is_directory(tmp_ + "/made/here"));
  FakeStream stream;
  sessions_.Run(id, R"({"command":"pwd"})", stream);
  EXPECT_THAT(stream.events(), testing::Contains(HasSubstr("/sessions/made/here")));
  EXPECT_EQ(sessions_.Create(R"({"cwd":"/etc/passwd"})", &id)->message,
            "error creating session. mkdir /etc/passwd: not a directory");
  EXPECT_EQ(sessions_.Create("{x", &id)->status, 400);
  EXPECT_FALSE(sessions_.Create("{}", &id));
}

TEST_F(SessionsTest, Refusals) {
  EXPECT_THAT(Run("{}"), ElementsAre(EndsWith("failed on the 'required' tag")));
  EXPECT_THAT(Run(R"({"command":"x","timeout":-1})"),
              ElementsAre(EndsWith("'Timeout' failed on the 'gte' tag")));
  EXPECT_THAT(Run(R"({"command":"x","cwd":"/nope/zz"})"),
              ElementsAre("invalid request. working directory does not exist: /nope/zz: stat "
                          "/nope/zz: no such file or directory"));
  EXPECT_THAT(Run("{x"), ElementsAre("error parsing request. invalid character 'x' looking for "
                                     "beginning of object key string"));
}

}  // namespace
}  // namespace bridge::local::execd
