// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/pty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "tests/local/execd/daemon_fixture.h"

namespace bridge::local::execd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PtyTest : public testing::Test {
 protected:
  // The id of a new session.
  std::string Create(const std::string& body) {
    const auto answer = caller_.Post("/pty", body);
    EXPECT_EQ(answer.status, 201) << answer.body;
    return answer.body.substr(15, 36);
  }
  std::string Target(const std::string& id, const std::string& query) {
    return "/pty/" + id + "/ws?" + query;
  }
  // Waits until a former client that has gone is no longer taken for the holder.
  SocketClient Attach(const std::string& id, const std::string& query) {
    while (query.find("takeover") == std::string::npos &&
           caller_.Get("/pty/" + id + "/ws").status == 409) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return SocketClient(caller_.port(), Target(id, query));
  }
  std::string Status(const std::string& id) { return caller_.Get("/pty/" + id).body; }
  bool WaitForStatus(const std::string& id, const std::string& text) {
    const absl::Time end = absl::Now() + kLong;
    while (absl::Now() < end) {
      if (Status(id).find(text) != std::string::npos) return true;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return false;
  }
  // Until all buffers on the way are full and the process stands still.
  void AwaitStandstill(const std::string& id) {
    for (std::string before;
         before != Status(id) || before.find("offset\":0}") != std::string::npos;) {
      before = Status(id);
      absl::SleepFor(absl::Milliseconds(50));
    }
  }
  static std::string Connected(const std::string& id, const std::string& mode) {
    return "{\"type\":\"connected\",\"session_id\":\"" + id + "\",\"mode\":\"" + mode + "\"}\n";
  }
  static std::string Replay(int64_t offset, const std::string& bytes) {
    std::string out(1, '\3');
    for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(offset >> shift);
    return out + bytes;
  }

  std::unique_ptr<Daemon> daemon_ = StartDaemon({.habits = kHabits110});
  Caller caller_{*daemon_};
};

TEST_F(PtyTest, PipesKeepTheStreamsApartAndBytesExact) {
  const std::string id = Create(R"({"command":"cat; echo err >&2; exit 3"})");
  SocketClient client = Attach(id, "pty=0");
  EXPECT_EQ(client.Next(), Connected(id, "pipe"));
  ASSERT_TRUE(client.socket().WriteBinary(std::string("\0bin\0\xff\r\n\4", 9)).ok());
  EXPECT_EQ(client.Next(), std::string("\1bin\0\xff\r\n\4", 9));
  EXPECT_THAT(Status(id), HasSubstr("\"running\":true,\"output_offset\":8"));
  ASSERT_TRUE(client.socket().WriteText(R"({"type":"signal","signal":"SIGTERM"})").ok());
  EXPECT_EQ(client.Next(), "{\"type\":\"exit\",\"exit_code\":-1}\n");
  EXPECT_EQ(client.Close(), "1000 process exited");
}

TEST_F(PtyTest, ReattachingReplaysAndGoesOn) {
  const std::string id = Create(R"({"command":"printf abc; read x; printf d$x; read y"})");
  {
    SocketClient client = Attach(id, "pty=0");
    client.Until("abc");
  }
  SocketClient all = Attach(id, "pty=0&since=0&takeover=1");
  EXPECT_EQ(all.Next(), Replay(0, "abc"));
  EXPECT_EQ(all.Next(), Connected(id, "pipe"));
  ASSERT_TRUE(all.socket().WriteBinary(std::string("\0z\n", 3)).ok());
  EXPECT_EQ(all.Next(), "\1dz");
  SocketClient tail = Attach(id, "pty=0&since=4&takeover=1");
  EXPECT_EQ(tail.Next(), Replay(4, "z"));
  EXPECT_EQ(all.Close(), "4001 TAKEN_OVER");
  EXPECT_EQ(tail.Next(), Connected(id, "pipe"));
  SocketClient beyond = Attach(id, "pty=0&since=99&takeover=1");
  EXPECT_EQ(beyond.Next(), Connected(id, "pipe"));
}

TEST_F(PtyTest, ASecondClientIsRefused) {
  const std::string id = Create(R"({"command":"read x"})");
  SocketClient client = Attach(id, "pty=0");
  client.Next();
  EXPECT_EQ(SocketClient(caller_.port(), Target(id, "pty=0")).status(), 409);
  EXPECT_EQ(caller_.Get("/pty/" + id + "/ws").status, 409);
}

TEST_F(PtyTest, AttachingAfterTheEndRunsItAgain) {
  const std::string id = Create(R"({"command":"echo run; exit 4"})");
  for (int round = 0; round < 2; ++round) {
    SocketClient client = Attach(id, "pty=0&since=" + std::to_string(4 * round));
    EXPECT_EQ(client.Until("exit_code"),
              Connected(id, "pipe") + "\1run\n" + "{\"type\":\"exit\",\"exit_code\":4}\n");
    ASSERT_TRUE(WaitForStatus(id, "\"running\":false"));
  }
  EXPECT_THAT(Status(id), HasSubstr("\"output_offset\":8"));
}

TEST_F(PtyTest, ATerminalWithItsSize) {
  const std::string id = Create(R"({"command":"stty size; read x; stty size; tty; read x"})");
  SocketClient client = Attach(id, "pty=1");
  EXPECT_EQ(client.Next(), Connected(id, "pty"));
  client.Until("24 80\r\n");
  ASSERT_TRUE(client.socket().WriteText(R"({"type":"resize","cols":0,"rows":10})").ok());
  ASSERT_TRUE(client.socket().WriteText(R"({"type":"resize","cols":100,"rows":30})").ok());
  ASSERT_TRUE(client.socket().WriteText(R"({"type":"stdin","data":"\n"})").ok());
  EXPECT_THAT(client.Until("/dev/pts/"), HasSubstr("30 100\r\n"));
}

TEST_F(PtyTest, ControlFrames) {
  const std::string id = Create(R"({"command":"read x"})");
  SocketClient client = Attach(id, "pty=0");
  client.Next();
  for (const char* ignored : {"not json", R"({"type":"signal","signal":"SIGFOO"})",
                              R"({"type":"resize","cols":1,"rows":1})", R"({"type":5})"}) {
    ASSERT_TRUE(client.socket().WriteText(ignored).ok());
  }
  ASSERT_TRUE(client.socket().WriteBinary("").ok());
  ASSERT_TRUE(client.socket().WriteBinary("\x7fzz").ok());
  ASSERT_TRUE(client.socket().WriteText(R"({"type":"bogus"})").ok());
  EXPECT_EQ(client.Next(),
            "{\"type\":\"error\",\"error\":\"unknown frame type "
            "\\\"bogus\\\"\",\"code\":\"INVALID_FRAME\"}\n");
  ASSERT_TRUE(client.socket().WriteText(R"({"type":"ping"})").ok());
  EXPECT_EQ(client.Next(), "{\"type\":\"pong\"}\n");
}

TEST_F(PtyTest, TheRingKeepsTheLastMebibyte) {
  const std::string id =
      Create(R"({"command":"head -c 3000000 /dev/zero | tr '\\0' x; echo END; read x"})");
  {
    SocketClient client = Attach(id, "pty=0");
    client.Until("END\n");
  }
  SocketClient client = Attach(id, "pty=0&takeover=1");
  const std::string replay = client.Next();
  EXPECT_THAT(replay.substr(0, 9), Replay(3'000'004 - (1 << 20), ""));
  EXPECT_EQ(replay.size(), 9u + (1 << 20));
  EXPECT_THAT(replay, EndsWith("xEND\n"));
}

TEST_F(PtyTest, AProcessThatDoesNotReadDoesNotKeepATakeoverOut) {
  const std::string id = Create(R"({"command":"echo up; exec sleep 100"})");
  SocketClient stuck = Attach(id, "pty=0");
  stuck.Until("up");
  std::string input(1 << 20, 'x');
  input[0] = '\0';
  ASSERT_TRUE(stuck.socket().WriteBinary(input).ok());
  SocketClient next = Attach(id, "pty=0&since=3&takeover=1");
  EXPECT_EQ(next.Next(), Connected(id, "pipe"));
}

TEST_F(PtyTest, AClientThatDoesNotReadIsThrownOutByATakeover) {
  const std::string id = Create(R"({"command":"yes"})");
  SocketClient stuck = Attach(id, "pty=0");
  stuck.Next();
  AwaitStandstill(id);
  SocketClient next = Attach(id, "pty=0&takeover=1");
  EXPECT_THAT(next.Next(), StartsWith("\3"));
  EXPECT_EQ(next.Next(), Connected(id, "pipe"));
  EXPECT_THAT(next.Next(), StartsWith("\1"));
}

// It heard nothing: its thread saw that it was displaced and left before it was told.
TEST_F(PtyTest, AClientThatSendsWhileItIsDisplacedIsToldSo) {
  const std::string id = Create(R"({"command":"yes & exec cat >/dev/null"})");
  auto former = std::make_unique<SocketClient>(caller_.port(), Target(id, "pty=0"));
  ASSERT_EQ(former->Next(), Connected(id, "pipe"));
  for (int i = 0; i < 10; ++i) {
    std::thread typist([&former] {
      while (former->socket().WriteBinary(std::string("\0x", 2)).ok()) {
      }
    });
    std::string told;
    std::thread reader([&former, &told] { told = former->Close(); });
    auto next = std::make_unique<SocketClient>(caller_.port(), Target(id, "pty=0&takeover=1"));
    EXPECT_THAT(next->Until(Connected(id, "pipe")), EndsWith(Connected(id, "pipe")));
    reader.join();
    typist.join();
    EXPECT_EQ(told, "4001 TAKEN_OVER");
    former = std::move(next);
  }
}

// Its thread was gone before anybody ended the write that was stuck, and then nobody could.
TEST_F(PtyTest, AClientThatSendsAndDoesNotReadIsThrownOutByATakeover) {
  const std::string id = Create(R"({"command":"yes"})");
  SocketClient stuck = Attach(id, "pty=0");
  stuck.Next();
  AwaitStandstill(id);
  std::thread typist([&stuck] {
    while (stuck.socket().WriteBinary(std::string("\0x", 2)).ok()) {
    }
  });
  SocketClient next = Attach(id, "pty=0&takeover=1");
  EXPECT_THAT(next.Next(), StartsWith("\3"));
  EXPECT_EQ(next.Next(), Connected(id, "pipe"));
  typist.join();
}

TEST_F(PtyTest, DeletingKills) {
  const std::string id = Create(R"({"command":"echo up; exec sleep 100"})");
  SocketClient client = Attach(id, "pty=0");
  client.Until("up");
  EXPECT_EQ(caller_.Call("DELETE", "/pty/" + id).status, 200);
  EXPECT_EQ(client.Next(), "{\"type\":\"exit\",\"exit_code\":-1}\n");
  EXPECT_EQ(caller_.Call("DELETE", "/pty/" + id).status, 404);
  EXPECT_EQ(caller_.Get("/pty/" + id).status, 404);
}

TEST_F(PtyTest, WhatCannotBeStarted) {
  const std::string id = Create(R"({"command":"true","cwd":"/tmp"})");
  setenv("PATH", "/nowhere", 1);
  SocketClient client = Attach(id, "pty=0");
  EXPECT_THAT(client.Next(), AllOf(HasSubstr("START_FAILED"), HasSubstr("not found in $PATH")));
  setenv("PATH", "/usr/bin:/bin", 1);
}

TEST_F(PtyTest, WithoutAHandshakeThereIsNoSocket) {
  const std::string id = Create("");
  EXPECT_EQ(caller_.Get("/pty/" + id + "/ws").status, 400);
  EXPECT_EQ(Status(id), "{\"session_id\":\"" + id + "\",\"running\":false,\"output_offset\":0}");
}

TEST_F(PtyTest, OnlyTheOldVersionAnswersTwiceWhenTheDirectoryFails) {
  const auto old = caller_.Post("/pty", R"({"cwd":"/etc/passwd/x"})");
  EXPECT_EQ(old.status, 500);
  EXPECT_THAT(old.body, HasSubstr("}{\"session_id\":"));
  const auto current_daemon = StartDaemon();
  const auto current = Caller(*current_daemon).Post("/pty", R"({"cwd":"/etc/passwd/x"})");
  EXPECT_EQ(current.status, 500);
  EXPECT_THAT(current.body, Not(HasSubstr("session_id")));
}

}  // namespace
}  // namespace bridge::local::execd
