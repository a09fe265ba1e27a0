// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/websocket.h"

#include <optional>
#include <string>
#include <vector>

#include "tests/net/websocket_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(WebSocketTest, MessagesGoBothWays) {
  std::string request;
  std::vector<WebSocketFrame> frames;
  RawServer server([&](RawConnection& peer) {
    request = AcceptWebSocket(peer);
    for (int i = 0; i < 2; ++i) frames.push_back(ReadFrame(peer).value_or(WebSocketFrame()));
    peer.Write(EncodeFrame({.opcode = 1, .payload = "text"}));
    peer.Write(EncodeFrame({.opcode = 2, .payload = std::string("\0\xff", 2)}));
    peer.Write(EncodeFrame({.opcode = 8, .payload = ClosePayload(1000, "bye")}));
    frames.push_back(ReadFrame(peer).value_or(WebSocketFrame()));
  });
  Seen seen;
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    const HttpHeaders headers({{"X-Key", "secret"}});
    const absl::Status connected =
        co_await socket.Connect("ws" + server.Url("/ws?x=1").substr(4), headers);
    EXPECT_TRUE(connected.ok()) << connected;
    const bool first = co_await socket.Write(WebSocketKind::kText, "hello");
    const bool second = co_await socket.Write(WebSocketKind::kBinary, std::string_view("\0b", 2));
    EXPECT_TRUE(first && second);
    co_await ReadToEnd(socket, &seen);
  });
  server.AwaitScripts();
  EXPECT_THAT(request, HasSubstr("GET /ws?x=1 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nX-Key: secret\r\n"));
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].opcode, 1);
  EXPECT_EQ(frames[0].payload, "hello");
  EXPECT_TRUE(frames[0].masked);
  EXPECT_EQ(frames[1].opcode, 2);
  EXPECT_EQ(frames[1].payload, std::string("\0b", 2));
  EXPECT_EQ(frames[2].opcode, 8);  // the close frame is answered
  EXPECT_EQ(frames[2].payload, ClosePayload(1000, "bye"));
  EXPECT_THAT(seen.texts, ElementsAre("text"));
  EXPECT_THAT(seen.binaries, ElementsAre(std::string("\0\xff", 2)));
  EXPECT_EQ(seen.end.code, 1000);
  EXPECT_EQ(seen.end.reason, "bye");
  EXPECT_TRUE(seen.end.status.ok());
}

TEST_F(WebSocketTest, FramesThatComeWithTheHandshakeCount) {
  RawServer server([](RawConnection& peer) {
    const std::string answer = WebSocketAnswer(peer.ReadHead());
    peer.Write(answer + EncodeFrame({.opcode = 1, .payload = "early"}) +
               EncodeFrame({.opcode = 8, .payload = ClosePayload(1000)}));
    peer.AwaitClose();
  });
  const Seen seen = ReadAll(server);
  EXPECT_THAT(seen.texts, ElementsAre("early"));
  EXPECT_EQ(seen.end.code, 1000);
}

// The same frames, cut at every byte.
TEST_F(WebSocketTest, FramesMayBeCutAnywhere) {
  const std::string frames =
      EncodeFrame({.fin = false, .opcode = 1, .payload = "frag"}) +
      EncodeFrame({.opcode = 9, .payload = "p"}) + EncodeFrame({.opcode = 0, .payload = "mented"}) +
      EncodeFrame({.opcode = 2, .payload = std::string(200, 'b')}) + EncodeFrame({.opcode = 2}) +
      EncodeFrame({.opcode = 8, .payload = ClosePayload(4001, "gone")});
  for (size_t cut = 1; cut < frames.size(); cut += cut < 40 ? 1 : 13) {
    RawServer server([&](RawConnection& peer) {
      AcceptWebSocket(peer);
      peer.Write(frames.substr(0, cut));
      peer.Write(frames.substr(cut));
      peer.AwaitClose();
    });
    const Seen seen = ReadAll(server);
    EXPECT_THAT(seen.texts, ElementsAre("fragmented"));
    EXPECT_THAT(seen.binaries, ElementsAre(std::string(200, 'b'), ""));
    EXPECT_EQ(seen.end.code, 4001);
    EXPECT_EQ(seen.end.reason, "gone");
  }
}

TEST_F(WebSocketTest, PingsAreAnsweredThoughNobodyReads) {
  std::optional<WebSocketFrame> pong;
  Signal ponged;
  RawServer server([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    peer.Write(EncodeFrame({.opcode = 9, .payload = "are you there"}));
    pong = ReadFrame(peer);
    ponged.Raise();
    peer.AwaitClose();
  });
  Running running(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    const absl::Status connected = co_await socket.Connect(server.Url());
    EXPECT_TRUE(connected.ok());
    (void)co_await loop_.Sleep(absl::InfiniteDuration());
  });
  ponged.Await();
  running.Cancel();
  running.Await();
  ASSERT_TRUE(pong.has_value());
  EXPECT_EQ(pong->opcode, 10);
  EXPECT_EQ(pong->payload, "are you there");
}

TEST_F(WebSocketTest, CloseSendsItsCodeAndReadsOnToThePeers) {
  std::optional<WebSocketFrame> close;
  RawServer server([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    close = ReadFrame(peer);
    peer.Write(EncodeFrame({.opcode = 2, .payload = "last words"}));
    peer.Write(EncodeFrame({.opcode = 8, .payload = close->payload}));
    peer.AwaitClose();
  });
  Seen seen;
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    (void)co_await socket.Connect(server.Url());
    const bool closed = co_await socket.Close(1001, "going away");
    EXPECT_TRUE(closed);
    const bool late = co_await socket.Write(WebSocketKind::kText, "too late");
    EXPECT_FALSE(late);
    const bool again = co_await socket.Close(1000, "");
    EXPECT_FALSE(again);
    co_await ReadToEnd(socket, &seen);
  });
  server.AwaitScripts();
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->opcode, 8);
  EXPECT_EQ(close->payload, ClosePayload(1001, "going away"));
  EXPECT_THAT(seen.binaries, ElementsAre("last words"));
  EXPECT_EQ(seen.end.code, 1001);
}

TEST_F(WebSocketTest, LongReasonsAreCutBetweenCharacters) {
  std::optional<WebSocketFrame> close;
  RawServer server([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    close = ReadFrame(peer);
  });
  std::string reason;
  for (int i = 0; i < 100; ++i) reason += "\xE2\x82\xAC";  // the euro sign, three bytes
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    (void)co_await socket.Connect(server.Url());
    const bool closed = co_await socket.Close(3000, "ab" + reason);
    EXPECT_TRUE(closed);
  });
  server.AwaitScripts();
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->payload, ClosePayload(3000, "ab" + reason.substr(0, 120)));
}

// uvicorn closes with 1012 when it restarts; gateways use 1013 and 1014.
TEST_F(WebSocketTest, CodesAssignedAfterTheRfcAreUnderstood) {
  for (const uint16_t code : {1012, 1013, 1014, 3999, 4999}) {
    RawServer server([code](RawConnection& peer) {
      AcceptWebSocket(peer);
      peer.Write(EncodeFrame({.opcode = 8, .payload = ClosePayload(code, "restart")}));
      peer.AwaitClose();
    });
    const Seen seen = ReadAll(server);
    EXPECT_EQ(seen.end.code, code);
    EXPECT_EQ(seen.end.reason, "restart");
    EXPECT_TRUE(seen.end.status.ok()) << seen.end.status;
  }
}

TEST_F(WebSocketTest, LargeMessagesBothWays) {
  std::string echoed;
  const std::string large(3'000'000, 'L');
  RawServer server([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    const auto frame = ReadFrame(peer);
    echoed = frame->payload;
    peer.Write(EncodeFrame({.opcode = 2, .payload = frame->payload}));
    peer.Write(EncodeFrame({.opcode = 8, .payload = ClosePayload(1000)}));
    peer.AwaitClose();
  });
  Seen seen;
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    (void)co_await socket.Connect(server.Url());
    const bool sent = co_await socket.Write(WebSocketKind::kBinary, large);
    EXPECT_TRUE(sent);
    co_await ReadToEnd(socket, &seen);
  });
  EXPECT_EQ(echoed, large);
  ASSERT_EQ(seen.binaries.size(), 1u);
  EXPECT_EQ(seen.binaries[0], large);
}

// A reader that does not read stops the sender; nothing is lost when it reads on.
TEST_F(WebSocketTest, ASlowReaderHoldsTheSenderBack) {
  const std::string frame = EncodeFrame({.opcode = 2, .payload = std::string(65536, 's')});
  std::atomic<int> sent{0};
  Signal stalled;
  RawServer server([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    for (; sent < 2000; ++sent) {
      if (!peer.Write(frame)) return;
    }
    peer.Write(EncodeFrame({.opcode = 8, .payload = ClosePayload(1000)}));
    peer.AwaitClose();
  });
  int got = 0;
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_, {.max_unread_bytes = 256 * 1024});
    (void)co_await socket.Connect(server.Url());
    int before = -1;  // until the sender stands still
    while (before != sent) {
      before = sent;
      (void)co_await loop_.Sleep(absl::Milliseconds(100));
    }
    EXPECT_LT(sent, 400);  // 25 MiB of socket buffers at the very most, not 125
    WebSocketMessage message;
    while (co_await socket.Read(&message)) got += message.data.size() == 65536 ? 1 : 0;
    EXPECT_EQ(socket.end().code, 1000);
  });
  EXPECT_EQ(got, 2000);
}

// The other direction: Write() returns only when the kernel has the message.
TEST_F(WebSocketTest, APeerThatDoesNotReadHoldsTheWriterBack) {
  Signal read_on;
  size_t received = 0;
  RawServer server([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    read_on.Await();
    while (received < 500 * size_t{65536}) {
      const auto frame = ReadFrame(peer);
      if (!frame) return;
      received += frame->payload.size();
    }
  });
  int written = 0;
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    (void)co_await socket.Connect(server.Url());
    auto writer = [&]() -> Task<void> {
      const std::string data(65536, 'w');
      while (written < 500) {
        const bool ok = co_await socket.Write(WebSocketKind::kBinary, data);
        if (!ok) break;
        ++written;
      }
    };
    auto watcher = [&]() -> Task<void> {
      int before = -1;
      while (before != written) {
        before = written;
        (void)co_await loop_.Sleep(absl::Milliseconds(100));
      }
      EXPECT_LT(written, 400);
      read_on.Raise();
      (void)co_await loop_.Sleep(absl::InfiniteDuration());
    };
    co_await RunBoth(writer, watcher);
  });
  EXPECT_EQ(written, 500);
  server.AwaitScripts();
  EXPECT_EQ(received, 500 * size_t{65536});
}

// Cancelled while it connects, while it waits for the handshake, and while it reads.
// Relay: one task reads while the other one writes, over one connection.
TEST_F(WebSocketTest, OneReaderAndOneWriterAtATime) {
  RawServer server([](RawConnection& peer) {
    AcceptWebSocket(peer);
    while (true) {
      const auto frame = ReadFrame(peer);
      if (!frame) return;
      peer.Write(EncodeFrame({.opcode = frame->opcode, .payload = frame->payload}));
      if (frame->opcode == 8) return;
    }
  });
  std::vector<std::string> echoed;
  RunTask(loop_, [&]() -> Task<void> {
    WebSocket socket(client_);
    (void)co_await socket.Connect(server.Url());
    auto writer = [&]() -> Task<void> {
      for (int i = 0; i < 500; ++i) {
        const bool ok = co_await socket.Write(WebSocketKind::kText, std::to_string(i));
        EXPECT_TRUE(ok);
      }
      (void)co_await socket.Close(1000, "");
      (void)co_await loop_.Sleep(absl::InfiniteDuration());
    };
    auto reader = [&]() -> Task<void> {
      WebSocketMessage message;
      while (co_await socket.Read(&message)) echoed.push_back(message.data);
    };
    co_await RunBoth(writer, reader);
    EXPECT_EQ(socket.end().code, 1000);
  });
  ASSERT_EQ(echoed.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(echoed[static_cast<size_t>(i)], std::to_string(i));
}

// ---- Time

class WebSocketTimeTest : public HttpFakeTimeTest {};

TEST_F(WebSocketTimeTest, PingsWhenNothingComesAndGivesUpWhenNothingAnswers) {
  std::vector<int> opcodes;
  Signal open;
  Signal pinged[2];
  RawServer server([&](RawConnection& peer) {
    AcceptWebSocket(peer);
    ReadFrame(peer);
    open.Raise();
    for (Signal& signal : pinged) {
      opcodes.push_back(ReadFrame(peer).value_or(WebSocketFrame()).opcode);
      signal.Raise();
    }
    peer.AwaitClose();
  });
  Signal ended;
  WebSocketEnd end;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          WebSocket socket(client_);
          (void)co_await socket.Connect(server.Url());
          (void)co_await socket.Write(WebSocketKind::kText, "open");
          WebSocketMessage message;
          const bool read = co_await socket.Read(&message);
          EXPECT_FALSE(read);
          end = socket.end();
        },
        [&] { ended.Raise(); });
  });
  open.Await();
  clock_.Advance(absl::Seconds(20));
  pinged[0].Await();
  clock_.Advance(absl::Seconds(20));
  pinged[1].Await();
  clock_.Advance(absl::Seconds(20));
  ended.Await();
  EXPECT_THAT(opcodes, ElementsAre(9, 9));
  EXPECT_THAT(end.status, FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_FALSE(end.code.has_value());
}

}  // namespace
}  // namespace bridge
