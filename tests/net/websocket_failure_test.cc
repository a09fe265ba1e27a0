// SPDX-License-Identifier: Apache-2.0
//
// Peers that refuse, lie, fall silent or go away, and callers that change their mind.
#include <latch>
#include <optional>
#include <string>
#include <vector>

#include "tests/net/websocket_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WebSocketFailureTest : public WebSocketTest {};

TEST_F(WebSocketFailureTest, ReservedCodesNeverTravel) {
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535}) {
    std::optional<WebSocketFrame> close;
    RawServer server([&](RawConnection& peer) {
      AcceptWebSocket(peer);
      close = ReadFrame(peer);
      peer.Write(EncodeFrame({.opcode = 8}));
      peer.AwaitClose();
    });
    Seen seen;
    RunTask(loop_, [&]() -> Task<void> {
      WebSocket socket(client_);
      (void)co_await socket.Connect(server.Url());
      (void)co_await socket.Close(static_cast<uint16_t>(code), "why");
      co_await ReadToEnd(socket, &seen);
    });
    server.AwaitScripts();
    ASSERT_TRUE(close.has_value());
    EXPECT_EQ(close->payload, "") << code;
    EXPECT_EQ(seen.end.code, 1005);  // the peer's close frame had no code either
    EXPECT_TRUE(seen.end.status.ok());
  }
}

TEST_F(WebSocketFailureTest, AForbiddenCloseCodeIsAViolation) {
  for (const uint16_t code : {0, 999, 1005, 1006, 1015, 2000}) {
    RawServer server([code](RawConnection& peer) {
      AcceptWebSocket(peer);
      peer.Write(EncodeFrame({.opcode = 8, .payload = ClosePayload(code)}));
      peer.AwaitClose();
    });
    const Seen seen = ReadAll(server);
    EXPECT_FALSE(seen.end.code.has_value());
    EXPECT_THAT(seen.end.status, FailsWith("UPSTREAM_PROTOCOL")) << code;
  }
}

TEST_F(WebSocketFailureTest, AConnectionThatEndsWithoutACloseFrameIsLost) {
  for (const bool reset : {false, true}) {
    RawServer server([reset](RawConnection& peer) {
      AcceptWebSocket(peer);
      peer.Write(EncodeFrame({.opcode = 1, .payload = "whole"}));
      peer.Write(EncodeFrame({.opcode = 1, .payload = "half a message"}).substr(0, 8));
      ReadFrame(peer);
      if (reset) peer.Reset();
    });
    Seen seen;
    RunTask(loop_, [&]() -> Task<void> {
      WebSocket socket(client_);
      (void)co_await socket.Connect(server.Url());
      WebSocketMessage message;
      const bool got = co_await socket.Read(&message);
      EXPECT_TRUE(got);
      EXPECT_EQ(message.data, "whole");
      (void)co_await socket.Write(WebSocketKind::kText, "go");
      co_await ReadToEnd(socket, &seen);
      const bool late = co_await socket.Write(WebSocketKind::kText, "x");
      EXPECT_FALSE(late);
    });
    EXPECT_TRUE(seen.texts.empty());
    EXPECT_FALSE(seen.end.code.has_value());
    EXPECT_THAT(seen.end.status, FailsWith("UPSTREAM_UNAVAILABLE"));
  }
}

TEST_F(WebSocketFailureTest, ViolationsEndTheConnectionWithACode) {
  struct Case {
    std::string bytes;
    std::string code;  // what the client's close frame says
    std::string words;
  };
  const std::vector<Case> cases = {
      {EncodeFrame({.opcode = 1, .masked = true, .payload = "m"}), ClosePayload(1002), "malformed"},
      {EncodeFrame({.rsv = 4, .opcode = 1, .payload = "r"}), ClosePayload(1002), "malformed"},
      {EncodeFrame({.opcode = 0, .payload = "c"}), ClosePayload(1002), "malformed"},
      {EncodeFrame({.opcode = 1, .payload = "\xff"}), ClosePayload(1007), "UTF-8"},
      {EncodeFrame({.opcode = 2, .payload = std::string(1001, 'x')}), ClosePayload(1009), "1000"},
      {EncodeFrame({.fin = false, .opcode = 9}), "", "malformed"},
      {EncodeFrame({.opcode = 9, .payload = std::string(126, 'x')}), "", "malformed"},
  };
  for (const Case& c : cases) {
    std::optional<WebSocketFrame> close;
    RawServer server([&](RawConnection& peer) {
      AcceptWebSocket(peer);
      peer.Write(c.bytes);
      close = ReadFrame(peer);
      peer.AwaitClose();
    });
    const Seen seen = ReadAll(server, {.max_message_bytes = 1000});
    EXPECT_FALSE(seen.end.code.has_value());
    EXPECT_THAT(seen.end.status, FailsWith("UPSTREAM_PROTOCOL"));
    EXPECT_THAT(seen.end.status, SaysInMessage(c.words));
    server.AwaitScripts();
    ASSERT_TRUE(close.has_value());
    EXPECT_EQ(close->opcode, 8);
    EXPECT_EQ(close->payload, c.code);
  }
}

TEST_F(WebSocketFailureTest, APeerThatPingsWithoutReadingIsDropped) {
  RawServer server([](RawConnection& peer) {
    AcceptWebSocket(peer);
    const std::string ping = EncodeFrame({.opcode = 9, .payload = std::string(125, 'p')});
    std::string many;
    for (int i = 0; i < 1000; ++i) many += ping;
    for (int i = 0; i < 1000; ++i) {
      if (!peer.Write(many)) return;
    }
  });
  const Seen seen = ReadAll(server);
  EXPECT_THAT(seen.end.status, FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(seen.end.status, SaysInMessage("pings"));
}

TEST_F(WebSocketFailureTest, ARefusedHandshakeShowsTheAnswer) {
  const std::string chunked =
      "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\n{\"a\":\r\n3\r\n 1}\r\n0\r\n\r\n";
  const std::string sized = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone";
  const std::string to_the_end = "HTTP/1.0 500 Oops\r\n\r\n" + std::string(5000, 'o');
  struct Case {
    std::string answer;
    int status;
    std::string body;
  };
  for (const Case& c : {Case{chunked, 403, "{\"a\": 1}"}, Case{sized, 404, "gone"},
                        Case{to_the_end, 500, std::string(1000, 'o')}}) {
    RawServer server([&c](RawConnection& peer) {
      peer.ReadHead();
      peer.Write(c.answer);
      if (c.status == 500) return;
      peer.AwaitClose();
    });
    std::optional<HttpResponse> refusal;
    const absl::Status status = Connect(server.Url("/ws?token=secret"), &refusal);
    EXPECT_THAT(status, FailsWith("UPSTREAM_PROTOCOL"));
    EXPECT_THAT(status, HasMetadata("upstream_status", std::to_string(c.status)));
    EXPECT_THAT(status.ToString(), ::testing::Not(HasSubstr("secret")));
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->status, c.status);
    EXPECT_EQ(refusal->body, c.body);
  }
}

TEST_F(WebSocketFailureTest, AWrongAcceptIsRefused) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write(
        "HTTP/1.1 101 ok\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
    peer.AwaitClose();
  });
  std::optional<HttpResponse> refusal;
  const absl::Status status = Connect(server.Url(), &refusal);
  EXPECT_THAT(status, FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(status, SaysInMessage("Sec-WebSocket-Accept"));
  EXPECT_FALSE(refusal.has_value());
}

TEST_F(WebSocketFailureTest, PeersThatSpeakNoHttp) {
  RawServer ssh([](RawConnection& peer) {
    peer.Write("SSH-2.0-OpenSSH_9.2\r\n\r\n");
    peer.AwaitClose();
  });
  EXPECT_THAT(Connect(ssh.Url()), FailsWith("UPSTREAM_PROTOCOL"));
  RawServer silent([](RawConnection& peer) { peer.ReadHead(); });
  EXPECT_THAT(Connect(silent.Url()), FailsWith("UPSTREAM_UNAVAILABLE"));
  RawServer endless([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 101 ok\r\n");
    while (peer.Write("X-Pad: " + std::string(1000, 'p') + "\r\n")) continue;
  });
  EXPECT_THAT(Connect(endless.Url()), SaysInMessage("too large"));
}

TEST_F(WebSocketFailureTest, FailuresToConnectAreTyped) {
  const ClosedPort closed;
  const absl::Status refused = Connect("ws://127.0.0.1:" + std::to_string(closed.port()) + "/");
  EXPECT_THAT(refused, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(refused, HasMetadata("phase", "connect"));
  EXPECT_THAT(Connect("ftp://127.0.0.1/"), FailsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(Connect("no url"), FailsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(Connect("ws://127.0.0.1:1/\r\nX-Evil: 1"), FailsWith("INVALID_ARGUMENT"));
}

TEST_F(WebSocketFailureTest, HeadersThatCannotTravelAreRefused) {
  RawServer server([](RawConnection& peer) { peer.AwaitClose(); });
  const absl::Status status = RunTask(loop_, [&]() -> Task<absl::Status> {
    WebSocket socket(client_);
    const HttpHeaders headers({{"X", "a\r\nb"}});
    co_return co_await socket.Connect(server.Url(), headers);
  });
  EXPECT_THAT(status, FailsWith("INVALID_ARGUMENT"));
  EXPECT_EQ(server.accepted(), 0);
}

TEST_F(WebSocketFailureTest, CancelWorksInEveryState) {
  const SilentPort silent;
  Signal asked;
  Signal open;
  RawServer no_answer([&](RawConnection& peer) {
    peer.ReadHead();
    asked.Raise();
    peer.AwaitClose();
  });
  RawServer quiet([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    ReadFrame(peer);
    open.Raise();
    peer.AwaitClose();
  });
  absl::Status connecting;
  absl::Status shaking;
  bool read = true;
  Running first(loop_, [&]() -> Task<void> {
    WebSocket socket(client_, {.connect_timeout = absl::InfiniteDuration()});
    connecting = co_await socket.Connect("ws://127.0.0.1:" + std::to_string(silent.port()));
  });
  Running second(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    shaking = co_await socket.Connect(no_answer.Url());
  });
  Running third(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    (void)co_await socket.Connect(quiet.Url());
    (void)co_await socket.Write(WebSocketKind::kText, "open");
    WebSocketMessage message;
    read = co_await socket.Read(&message);
    const bool late = co_await socket.Write(WebSocketKind::kText, "small enough to go at once");
    EXPECT_TRUE(late);
  });
  asked.Await();
  open.Await();
  for (Running* running : {&first, &second, &third}) {
    running->Cancel();
    running->Await();
  }
  EXPECT_THAT(connecting, FailsWith("CANCELLED"));
  EXPECT_THAT(shaking, FailsWith("CANCELLED"));
  EXPECT_FALSE(read);
}

// ---- Time

class WebSocketTimeoutTest : public HttpFakeTimeTest {};

TEST_F(WebSocketTimeoutTest, AHandshakeThatIsNotAnsweredTimesOut) {
  Signal asked;
  RawServer server([&](RawConnection& peer) {
    peer.ReadHead();
    asked.Raise();
    peer.AwaitClose();
  });
  Signal ended;
  absl::Status status;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          WebSocket socket(client_);
          status = co_await socket.Connect(server.Url());
        },
        [&] { ended.Raise(); });
  });
  asked.Await();
  loop_.RunAndWait([] {});  // the turn that sent the request also set the alarm
  clock_.Advance(absl::Seconds(10));
  ended.Await();
  EXPECT_THAT(status, FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_THAT(status, HasMetadata("phase", "answer"));
}

TEST_F(WebSocketTimeoutTest, AConnectionThatIsNotAcceptedTimesOut) {
  const SilentPort silent;
  Signal started;
  Signal ended;
  absl::Status status;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          WebSocket socket(client_);
          status = co_await socket.Connect("ws://127.0.0.1:" + std::to_string(silent.port()));
        },
        [&] { ended.Raise(); });
    started.Raise();
  });
  started.Await();
  clock_.Advance(absl::Seconds(5));
  ended.Await();
  EXPECT_THAT(status, FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_THAT(status, HasMetadata("phase", "connect"));
}

// The close frame that said why was lost when a write failed first.
TEST_F(WebSocketTest, WhatThePeerSaidBeforeItBrokeOffIsRead) {
  std::latch broken(1);
  RawServer server([&broken](RawConnection& peer) {
    AcceptWebSocket(peer);
    (void)ReadFrame(peer);
    peer.Write(EncodeFrame({.opcode = 1, .payload = "last"}) +
               EncodeFrame({.opcode = 8, .payload = ClosePayload(4001, "why")}));
    peer.Reset();
    broken.count_down();
  });
  Seen seen;
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    const HttpHeaders none;
    const absl::Status connected = co_await socket.Connect(server.Url("/"), none);
    EXPECT_TRUE(connected.ok()) << connected;
    (void)co_await socket.Write(WebSocketKind::kText, "go");
    broken.wait();  // the loop cannot read meanwhile
    const bool late = co_await socket.Write(WebSocketKind::kText, "late");
    EXPECT_FALSE(late);
    co_await ReadToEnd(socket, &seen);
  });
  EXPECT_THAT(seen.texts, ElementsAre("last"));
  EXPECT_EQ(seen.end.code, 4001);
}

}  // namespace
}  // namespace bridge
