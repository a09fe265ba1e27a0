// SPDX-License-Identifier: Apache-2.0
//
// /v1/exec over WebSockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "tests/local/execd/extra/exec_client.h"

namespace bridge::local::execd {
namespace {

class ExecSocketTest : public ExecTest {
 protected:
  // Reads until the condition holds.
  template <typename Condition>
  void ReadUntil(SocketClient& client, Story& story, Condition condition) {
    while (!condition(story)) {
      const std::string message = client.Next();
      ASSERT_FALSE(message.empty()) << "the connection ended";
      story.Feed(message);
      ASSERT_EQ(story.rest(), "") << "a message is not one frame";
    }
  }
  void Send(SocketClient& client, int type, uint64_t offset, const std::string& payload) {
    ASSERT_TRUE(client.socket().WriteBinary(MakeFrame(type, offset, payload)).ok());
  }
};

constexpr int kStdin = 0x21, kStdinEof = 0x22, kSignal = 0x23;

TEST_F(ExecSocketTest, TalksBothWays) {
  SocketClient client(caller_.port(), "/v1/exec/ws");
  ASSERT_TRUE(
      client.socket()
          .WriteText(
              R"({"shell":"while read l; do echo got $l; done; echo end >&2; exit 4","stdin":"pipe"})")
          .ok());
  Story story;
  ReadUntil(client, story, [](const Story& s) { return !s.started.is_null(); });
  Send(client, kStdin, 0, "a\n");
  ReadUntil(client, story, [](const Story& s) { return s.out == "got a\n"; });
  Send(client, kStdin, 0, "a\nb\n");  // the first half is a repeat
  ReadUntil(client, story, [](const Story& s) { return s.out == "got a\ngot b\n"; });
  Send(client, kStdinEof, 4, "");
  ReadUntil(client, story, [](const Story& s) { return s.done(); });
  EXPECT_EQ(story.err, "end\n");
  EXPECT_EQ(story.exited["code"], 4);
  EXPECT_EQ(story.acked, 4);
  EXPECT_EQ(client.Close(), "1000 ");
}

TEST_F(ExecSocketTest, ASignalPassesAProgramThatReadsNothing) {
  SocketClient client(caller_.port(), "/v1/exec/ws");
  ASSERT_TRUE(client.socket().WriteText(R"({"argv":["sleep","1000"],"stdin":"pipe"})").ok());
  Story story;
  ReadUntil(client, story, [](const Story& s) { return !s.started.is_null(); });
  Send(client, kStdin, 0, std::string(262144, 'x'));
  Send(client, kSignal, 0, R"({"signal":"TERM"})");
  ReadUntil(client, story, [](const Story& s) { return s.done(); });
  EXPECT_EQ(story.exited["signal_name"], "SIGTERM");
  EXPECT_EQ(story.exited["signalled_by_request"], true);
}

TEST_F(ExecSocketTest, MistakesOfTheClient) {
  const auto error_of = [&](const std::string& first, const std::string& second, bool text) {
    SocketClient client(caller_.port(), "/v1/exec/ws");
    EXPECT_TRUE(client.socket().WriteText(first).ok());
    if (!second.empty()) {
      EXPECT_TRUE(
          (text ? client.socket().WriteText(second) : client.socket().WriteBinary(second)).ok());
    }
    Story story;
    ReadUntil(client, story, [](const Story& s) { return !s.error.is_null(); });
    EXPECT_EQ(client.Close(), "1000 ");
    return story.error.value("code", "");
  };
  const std::string sleeper = R"({"argv":["sleep","1000"],"stdin":"pipe"})";
  EXPECT_EQ(error_of("{}", "", false), "INVALID_ARGUMENT");
  EXPECT_EQ(error_of(R"({"argv":["no-such"]})", "", false), "SPAWN_FAILED");
  EXPECT_EQ(error_of(sleeper, "not a frame", false), "INVALID_ARGUMENT");
  EXPECT_EQ(error_of(sleeper, MakeFrame(kStdin, 0, "x"), true), "INVALID_ARGUMENT");
  EXPECT_EQ(error_of(sleeper, MakeFrame(0x7e, 0, ""), false), "INVALID_ARGUMENT");
  EXPECT_EQ(error_of(sleeper, MakeFrame(kStdin, 5, "x"), false), "STDIN_OFFSET");
  EXPECT_EQ(error_of(sleeper, MakeFrame(kStdin, 262144, "x"), false), "INVALID_ARGUMENT");
  EXPECT_EQ(error_of(sleeper, MakeFrame(kStdinEof, 5, ""), false), "STDIN_OFFSET");
  EXPECT_EQ(error_of(sleeper, MakeFrame(kSignal, 0, "{}"), false), "INVALID_ARGUMENT");
  // All of them were killed.
  const Json list = Json::parse(caller_.Get("/v1/exec").body);
  for (const Json& exec : list["execs"]) {
    WaitFor(exec["exec_id"], [](const Json& i) { return i["running"] == false; });
  }
}

TEST_F(ExecSocketTest, AttachesWithInput) {
  const std::string id = Detach({{"shell", "echo up; cat"}, {"stdin", "pipe"}});
  WaitFor(id, [](const Json& i) { return i["stdout_bytes"] == 3; });
  {
    SocketClient client(caller_.port(), "/v1/exec/" + id + "/ws?stdout=1");
    Story story(1, 0);
    ReadUntil(client, story, [](const Story& s) { return s.out == "p\n"; });
    Send(client, kStdin, 0, "x");
    ReadUntil(client, story, [](const Story& s) { return s.out == "p\nx"; });
  }
  EXPECT_EQ(Info(id)["running"], true);  // cutting the socket detaches
  SocketClient client(caller_.port(), "/v1/exec/" + id + "/ws?stdout=4&on_disconnect=kill");
  Story story(4, 0);
  ReadUntil(client, story, [](const Story& s) { return s.acked == 1; });
  Send(client, kStdin, 1, "y");
  ReadUntil(client, story, [](const Story& s) { return s.out == "y"; });
  ASSERT_TRUE(client.socket().Close(1000).ok());
  WaitFor(id, [](const Json& i) { return i["running"] == false; });
}

TEST_F(ExecSocketTest, RefusalsBeforeTheHandshake) {
  EXPECT_EQ(SocketClient(caller_.port(), "/v1/exec/nope/ws").status(), 404);
  EXPECT_EQ(SocketClient(caller_.port(), "/v1/exec/ws?x=1").status(), 400);
  EXPECT_EQ(caller_.Get("/v1/exec/ws").status, 400);
  const std::string id = Detach({{"argv", {"true"}}});
  EXPECT_EQ(SocketClient(caller_.port(), "/v1/exec/" + id + "/ws?stdout=5").status(), 400);
}

// Two readers at once, one of them slow: nothing is lost for either.
TEST_F(ExecSocketTest, ASlowReaderHoldsTheProgramBack) {
  const std::string id =
      Detach({{"shell", "read x; seq 1 200000"}, {"stdin", "pipe"}, {"retain_bytes", 65536}});
  SocketClient slow(caller_.port(), "/v1/exec/" + id + "/ws");
  SocketClient fast(caller_.port(), "/v1/exec/" + id + "/ws");
  Story slow_story, fast_story;
  const auto started = [](const Story& s) { return !s.started.is_null(); };
  const auto done = [](const Story& s) { return s.done(); };
  ReadUntil(slow, slow_story, started);
  ReadUntil(fast, fast_story, started);
  EXPECT_EQ(Info(id)["attached"], 2);
  caller_.Call("PUT", "/v1/exec/" + id + "/stdin?offset=0&eof=1", "\n");
  std::thread reading([&] { ReadUntil(fast, fast_story, done); });
  absl::SleepFor(absl::Milliseconds(50));
  ReadUntil(slow, slow_story, done);
  reading.join();
  EXPECT_EQ(fast_story.out.size(), 1'288'895u);
  EXPECT_TRUE(slow_story.out == fast_story.out);
}

}  // namespace
}  // namespace bridge::local::execd
