// SPDX-License-Identifier: Apache-2.0
//
// /v1/exec over plain HTTP.
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

TEST_F(ExecTest, ExactBytesOfTwoStreams) {
  const Story story = Run({{"shell", "printf 'a\\r\\n\\377b\\0c'; printf 'err' >&2; exit 3"}});
  EXPECT_EQ(story.out, std::string("a\r\n\xff"
                                   "b\0c",
                                   7));
  EXPECT_EQ(story.err, "err");
  EXPECT_EQ(story.exited["kind"], "exited");
  EXPECT_EQ(story.exited["code"], 3);
  EXPECT_EQ(story.exited["timed_out"], false);
  EXPECT_EQ(story.exited["signalled_by_request"], false);
  EXPECT_EQ(story.drained["stdout_bytes"], 7);
  EXPECT_EQ(story.drained["stderr_bytes"], 3);
  EXPECT_EQ(story.drained["stdout_open"], false);
  EXPECT_EQ(story.started["pid"], story.started["pgid"]);
  EXPECT_EQ(story.started["exec_id"].get<std::string>().size(), 32u);
  EXPECT_EQ(story.started["stdin_window"], 262144);
  // The record outlives it.
  EXPECT_EQ(Info(story.started["exec_id"])["outcome"]["code"], 3);
}

TEST_F(ExecTest, TheClientMayChooseTheId) {
  const std::string id = "0123456789abcdef0123456789abcdef";
  const Story story = Run({{"shell", "exit 3"}, {"exec_id", id}});
  EXPECT_EQ(story.started["exec_id"], id);
  EXPECT_EQ(Info(id)["outcome"]["code"], 3);
  EXPECT_EQ(Refused({{"shell", "true"}, {"exec_id", id}}, 409)["code"], "EXEC_EXISTS");
}

TEST_F(ExecTest, ArgvEnvironmentAndDirectory) {
  Story story = Run({{"argv", {"printf", "%s|", "a b", "$HOME", ""}}});
  EXPECT_EQ(story.out, "a b|$HOME||");
  story = Run({{"argv", {"/usr/bin/env"}}, {"clear_env", true}, {"env", {{"A", "1"}}}});
  EXPECT_EQ(story.out, "A=1\n");
  story = Run({{"shell", "pwd"}, {"cwd", "/usr"}});
  EXPECT_EQ(story.out, "/usr\n");
  story = Run({{"shell", "cat; readlink /proc/self/fd/0"}});
  EXPECT_EQ(story.out, "/dev/null\n");
}

TEST_F(ExecTest, SignalsAndTimeouts) {
  Story story = Run({{"shell", "kill -SEGV $$"}});
  EXPECT_EQ(story.exited["kind"], "signalled");
  EXPECT_EQ(story.exited["signal"], 11);
  EXPECT_EQ(story.exited["signal_name"], "SIGSEGV");
  EXPECT_EQ(story.exited["timed_out"], false);
  story = Run({{"shell", "echo before; sleep 100 & wait"}, {"timeout_ms", 100}});
  EXPECT_EQ(story.out, "before\n");
  EXPECT_EQ(story.exited["signal_name"], "SIGKILL");
  EXPECT_EQ(story.exited["timed_out"], true);
  EXPECT_EQ(story.exited["signalled_by_request"], false);
}

TEST_F(ExecTest, WhatCannotBeStarted) {
  EXPECT_EQ(Refused({{"argv", {"no-such-program"}}}, 422)["kind"], "NOT_FOUND");
  EXPECT_EQ(Refused({{"argv", {"/etc/passwd"}}}, 422)["kind"], "NOT_EXECUTABLE");
  EXPECT_EQ(Refused({{"argv", {"true"}}, {"cwd", "/nope"}}, 422)["kind"], "BAD_CWD");
  EXPECT_EQ(Refused({{"argv", {"true"}}, {"user", "nobody-here"}}, 422)["kind"], "BAD_USER");
  EXPECT_EQ(Refused({{"argv", {"true", std::string(200'000, 'x')}}}, 422)["kind"],
            "ARGUMENTS_TOO_LONG");
  EXPECT_EQ(Refused({{"argv", {"true"}}, {"x", 1}}, 400)["field"], "x");
  EXPECT_EQ(caller_.Post("/v1/exec?x=1", R"({"argv":["true"]})").status, 400);
}

TEST_F(ExecTest, AsAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(Run({{"shell", "id -u; id -g; id -G"}, {"uid", 4242}}).out, "4242\n4242\n4242\n");
  EXPECT_EQ(Run({{"shell", "id -u; id -g"}, {"uid", 4242}, {"gid", 4343}}).out, "4242\n4343\n");
  EXPECT_EQ(Run({{"shell", "id -un; echo $USER $LOGNAME"}, {"user", "nobody"}}).out,
            "nobody\nnobody nobody\n");
}

TEST_F(ExecTest, InputThatComesAlong) {
  std::string input(3'000'000, 'x');
  for (size_t i = 0; i < input.size(); i += 7) input[i] = static_cast<char>(i);
  const Story story = Run({{"argv", {"cat"}}, {"stdin_b64", absl::Base64Escape(input)}});
  EXPECT_TRUE(story.out == input);
  EXPECT_EQ(story.acked, 3'000'000);
  EXPECT_TRUE(story.stdin_closed);
  EXPECT_EQ(story.exited["code"], 0);
  EXPECT_EQ(Run({{"argv", {"cat"}}, {"stdin_b64", ""}}).out, "");
  // A program that does not want it.
  EXPECT_EQ(Run({{"argv", {"true"}}, {"stdin_b64", absl::Base64Escape(input)}}).exited["code"], 0);
}

TEST_F(ExecTest, MuchOutputArrivesWhole) {
  const Story story = Run({{"shell", "seq 1 500000; seq 1 1000 >&2"}, {"retain_bytes", 65536}});
  EXPECT_EQ(story.out.size(), 3'388'895u);
  EXPECT_TRUE(story.out.ends_with("\n500000\n"));
  EXPECT_EQ(story.err.size(), 3893u);
  EXPECT_EQ(story.drained["stdout_bytes"], 3'388'895);
}

TEST_F(ExecTest, ADescendantThatHoldsTheOutputIsNotWaitedForForEver) {
  const Story story = Run({{"shell", "(sleep 100; echo late) & echo done"}, {"drain_ms", 50}});
  EXPECT_EQ(story.out, "done\n");
  EXPECT_EQ(story.exited["code"], 0);
  EXPECT_EQ(story.drained["stdout_open"], true);
  EXPECT_EQ(story.drained["stderr_open"], true);
}

TEST_F(ExecTest, WhatCameBeforeTheEndIsReadEvenWithoutADrainTime) {
  for (int i = 0; i < 20; ++i) {
    const Story story = Run({{"shell", "sleep 100 & head -c 60000 /dev/zero"}, {"drain_ms", 0}});
    EXPECT_EQ(story.out.size(), 60'000u);
  }
}

TEST_F(ExecTest, Heartbeats) {
  EXPECT_GE(Run({{"shell", "sleep 0.5"}, {"heartbeat_ms", 100}}).heartbeats, 3);
}

TEST_F(ExecTest, ACutStreamKills) {
  std::string id;
  {
    auto client = http::ClientExchange::Connect("127.0.0.1", caller_.port(), kLong);
    const std::string body = R"({"shell":"echo up; sleep 1000 & wait"})";
    (void)(*client)->SendHead("POST", "/v1/exec",
                              {{"Host", "x"}, {"Content-Length", std::to_string(body.size())}});
    (void)(*client)->SendBody(body, false);
    ASSERT_TRUE((*client)->ReadHead(kLong).ok());
    Story story;
    char buffer[4096];
    while (story.out != "up\n") {
      const auto n = (*client)->ReadBody(buffer, sizeof(buffer), kLong);
      ASSERT_TRUE(n.ok() && *n > 0);
      story.Feed(std::string_view(buffer, *n));
    }
    id = story.started["exec_id"];
  }
  const Json info = WaitFor(id, [](const Json& i) { return i["running"] == false; });
  EXPECT_EQ(info["outcome"]["signal_name"], "SIGKILL");
  EXPECT_EQ(info["outcome"]["signalled_by_request"], true);
  EXPECT_EQ(info["on_disconnect"], "kill");
}

TEST_F(ExecTest, DetachedAndResumed) {
  const std::string id =
      Detach({{"shell", "echo one; echo e >&2; read x; echo two$x"}, {"stdin", "pipe"}});
  WaitFor(id, [](const Json& i) { return i["stdout_bytes"] == 4 && i["stderr_bytes"] == 2; });
  EXPECT_EQ(
      Json::parse(caller_.Call("PUT", "/v1/exec/" + id + "/stdin?offset=0", "!\n").body)["taken"],
      2);
  Story story = Read(id, 0, 0);
  EXPECT_EQ(story.out, "one\ntwo!\n");
  EXPECT_EQ(story.err, "e\n");
  EXPECT_EQ(story.exited["code"], 0);
  story = Read(id, 6, 2);
  EXPECT_EQ(story.out, "o!\n");
  EXPECT_EQ(story.err, "");
  const Json info = WaitFor(id, [](const Json& i) { return i.value("drained", false); });
  EXPECT_EQ(info["stdout_bytes"], 9);
  EXPECT_EQ(info["first_stdout"], 0);
  const auto beyond = caller_.Get("/v1/exec/" + id + "/output?stdout=10");
  EXPECT_EQ(beyond.status, 400);
  EXPECT_EQ(Json::parse(beyond.body)["field"], "stdout");
}

TEST_F(ExecTest, WhatNobodyReadsIsForgottenAndSaidSo) {
  const std::string id =
      Detach({{"shell", "seq 1 100000; read x"}, {"stdin", "pipe"}, {"retain_bytes", 65536}});
  WaitFor(id, [](const Json& i) { return i["stdout_bytes"] == 588895; });
  const auto gone = caller_.Get("/v1/exec/" + id + "/output");
  EXPECT_EQ(gone.status, 410);
  const Json json = Json::parse(gone.body);
  EXPECT_EQ(json["code"], "OUTPUT_GONE");
  EXPECT_EQ(json["first_stdout"], 588895 - 65536);
  caller_.Call("PUT", "/v1/exec/" + id + "/stdin?offset=0&eof=1", "");
  const Story story = Read(id, 588895 - 65536, 0);
  EXPECT_EQ(story.out.size(), 65536u);
  EXPECT_TRUE(story.out.ends_with("\n100000\n"));
}

TEST_F(ExecTest, InputByNumber) {
  const std::string id = Detach({{"argv", {"cat"}}, {"stdin", "pipe"}});
  const std::string target = "/v1/exec/" + id + "/stdin?offset=";
  EXPECT_EQ(caller_.Call("PUT", target + "0", "hello").status, 200);
  EXPECT_EQ(caller_.Call("PUT", target + "0", "hello").status, 200);  // a repeat
  EXPECT_EQ(caller_.Call("PUT", target + "3", "lo, you").status, 200);
  const auto hole = caller_.Call("PUT", target + "99", "x");
  EXPECT_EQ(hole.status, 409);
  EXPECT_EQ(Json::parse(hole.body)["code"], "STDIN_OFFSET");
  EXPECT_EQ(Json::parse(hole.body)["taken"], 10);
  EXPECT_EQ(caller_.Call("PUT", target + "10&eof=1", "!").status, 200);
  EXPECT_EQ(Read(id, 0, 0).out, "hello, you!");
  const auto late = caller_.Call("PUT", target + "11", "x");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(Json::parse(late.body)["code"], "STDIN_CLOSED");
  const std::string deaf = Detach({{"argv", {"sleep", "100"}}});
  EXPECT_EQ(
      Json::parse(caller_.Call("PUT", "/v1/exec/" + deaf + "/stdin?offset=0", "x").body)["code"],
      "STDIN_CLOSED");
  EXPECT_EQ(caller_.Call("PUT", "/v1/exec/" + deaf + "/stdin", "x").status, 400);
}

TEST_F(ExecTest, MuchInputOverHttp) {
  const std::string id = Detach({{"shell", "sleep 0.2; wc -c"}, {"stdin", "pipe"}});
  const std::string input(5'000'000, 'x');
  const auto answer = caller_.Call("PUT", "/v1/exec/" + id + "/stdin?offset=0&eof=1", input);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(Read(id, 0, 0).out, "5000000\n");
}

TEST_F(ExecTest, AProgramThatClosesItsInput) {
  const std::string id =
      Detach({{"shell", "exec 0<&-; echo closed; sleep 100"}, {"stdin", "pipe"}});
  WaitFor(id, [](const Json& i) { return i["stdout_bytes"] == 7 && i["stdin_open"] == false; });
  const auto answer =
      caller_.Call("PUT", "/v1/exec/" + id + "/stdin?offset=0", std::string(200'000, 'x'));
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(Json::parse(answer.body)["code"], "STDIN_CLOSED");
}

TEST_F(ExecTest, AnySignal) {
  const std::string id =
      Detach({{"shell",
               "trap 'echo usr1' USR1; trap 'exit 9' INT; echo up; while :; do sleep 0.01; done"}});
  WaitFor(id, [](const Json& i) { return i["stdout_bytes"] == 3; });
  EXPECT_EQ(caller_.Post("/v1/exec/" + id + "/signal", R"({"signal":"USR1","to":"process"})").body,
            "{}");
  WaitFor(id, [](const Json& i) { return i["stdout_bytes"] == 8; });
  EXPECT_EQ(caller_.Post("/v1/exec/" + id + "/signal", R"({"signal":2})").status, 200);
  const Json info = WaitFor(id, [](const Json& i) { return i["running"] == false; });
  EXPECT_EQ(info["outcome"]["code"], 9);
  EXPECT_EQ(info["outcome"]["signalled_by_request"], true);
  const auto late = caller_.Post("/v1/exec/" + id + "/signal", R"({"signal":"TERM"})");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(Json::parse(late.body)["code"], "NOT_RUNNING");
  EXPECT_EQ(caller_.Post("/v1/exec/" + id + "/signal", R"({"signal":"NOPE"})").status, 400);
  EXPECT_EQ(caller_.Post("/v1/exec/" + id + "/signal", R"({"signal":0})").status, 400);
}

TEST_F(ExecTest, ListAndDelete) {
  const std::string first = Detach({{"argv", {"sleep", "1000"}}});
  const std::string second = Detach({{"argv", {"true"}}});
  const Json list = Json::parse(caller_.Get("/v1/exec").body)["execs"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["exec_id"], first);
  EXPECT_EQ(list[1]["exec_id"], second);
  const auto removed = caller_.Call("DELETE", "/v1/exec/" + first);
  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(Json::parse(removed.body)["outcome"]["signal_name"], "SIGKILL");
  EXPECT_EQ(caller_.Call("DELETE", "/v1/exec/" + first).status, 404);
  EXPECT_EQ(caller_.Get("/v1/exec/" + first).status, 404);
}

TEST_F(ExecTest, WhatIsKeptTellsHowItEnded) {
  const std::string id = Detach({{"argv", {"sleep", "1000"}}});
  EXPECT_EQ(caller_.Call("DELETE", "/v1/exec/" + id + "?keep=2").status, 400);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(caller_.Call("DELETE", "/v1/exec/" + id + "?keep=1").status, 200);
    const Json info = Json::parse(caller_.Get("/v1/exec/" + id).body);
    EXPECT_FALSE(info["running"]);
    EXPECT_EQ(info["outcome"]["signal_name"], "SIGKILL");
  }
}

// Who cuts a start cannot know which of the two arrives first.
TEST_F(ExecTest, WhatWasDeletedBeforeItCameDoesNotStart) {
  const std::string id(32, 'a');
  EXPECT_EQ(caller_.Call("DELETE", "/v1/exec/" + id).status, 404);
  EXPECT_EQ(Refused({{"shell", "true"}, {"exec_id", id}}, 409)["code"], "EXEC_CANCELLED");
  EXPECT_EQ(caller_.Get("/v1/exec/" + id).status, 404);
  // Another one does.
  EXPECT_EQ(Run({{"shell", "exit 4"}, {"exec_id", std::string(32, 'b')}}).exited["code"], 4);
}

// Whichever of the two is first: after the answer to DELETE nothing runs and nothing will.
TEST_F(ExecTest, ADeleteBesideItsStartLeavesNothing) {
  for (int i = 0; i < 60; ++i) {
    std::string id = std::to_string(i);
    id.insert(0, 32 - id.size(), '0');
    const Json request = {{"argv", {"sleep", "1000"}},
                          {"exec_id", id},
                          {"on_disconnect", "detach"},
                          {"stream", false}};
    int started = 0;
    std::thread starter([&] {
      Caller caller(*daemon_);
      started = caller.Post("/v1/exec", request.dump()).status;
    });
    const int deleted = caller_.Call("DELETE", "/v1/exec/" + id).status;
    starter.join();
    EXPECT_TRUE(started == 201 || started == 409) << started;
    EXPECT_EQ(deleted, started == 201 ? 200 : 404) << "of exec " << i;
  }
  EXPECT_TRUE(Json::parse(caller_.Get("/v1/exec").body)["execs"].empty());
}

}  // namespace
}  // namespace bridge::local::execd
