// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/websocket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

#include "bridge/local/http/websocket_frame.h"

namespace bridge::local::http {
namespace {

using Kind = WebSocket::Kind;

// A server's end, and the raw bytes of a client's.
class WebSocketTest : public ::testing::Test {
 protected:
  void Open(WebSocket::Options options = {}) {
    std::array<int, 2> fds{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    raw_ = std::make_unique<Socket>(fds[0]);
    socket_ = std::make_unique<Socket>(fds[1]);
    ws_ = std::make_unique<WebSocket>(*socket_, "", options);
  }

  void Send(uint8_t opcode, std::string_view payload, bool fin = true) {
    ASSERT_TRUE(raw_->Write(EncodeFrame(opcode, payload, fin, kMask)).ok());
  }

  std::string Received() {
    std::array<char, 4096> bytes;
    const auto n = raw_->Read(bytes.data(), bytes.size(), absl::Seconds(5));
    return n.ok() ? std::string(bytes.data(), *n) : std::string(n.status().message());
  }

  static constexpr std::array<uint8_t, 4> kMask = {1, 2, 3, 4};
  std::unique_ptr<Socket> raw_;
  std::unique_ptr<Socket> socket_;
  std::unique_ptr<WebSocket> ws_;
};

TEST_F(WebSocketTest, JoinsFragmentsAndAnswersPingsBetweenThem) {
  Open();
  Send(kOpText, "Hel", false);
  Send(kOpPing, "p");
  Send(kOpContinuation, "lo");
  const auto message = ws_->Read();
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->data, "Hello");
  EXPECT_EQ(message->kind, Kind::kText);
  EXPECT_EQ(Received(), EncodeFrame(kOpPong, "p", true, std::nullopt));
}

TEST_F(WebSocketTest, TimeoutLosesNothing) {
  Open();
  EXPECT_TRUE(absl::IsDeadlineExceeded(ws_->Read(absl::Milliseconds(5)).status()));
  const std::string frame = EncodeFrame(kOpBinary, "abc", true, kMask);
  ASSERT_TRUE(raw_->Write(frame.substr(0, 4)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(ws_->Read(absl::Milliseconds(5)).status()));
  ASSERT_TRUE(raw_->Write(frame.substr(4)).ok());
  EXPECT_EQ(ws_->Read()->data, "abc");
}

TEST_F(WebSocketTest, PingsByItselfWhileSomebodyReads) {
  Open({.ping_interval = absl::Milliseconds(20)});
  std::thread reader([&] { (void)ws_->Read(); });
  EXPECT_EQ(Received(), EncodeFrame(kOpPing, "", true, std::nullopt));
  EXPECT_EQ(Received(), EncodeFrame(kOpPing, "", true, std::nullopt));
  Send(kOpBinary, "enough");
  reader.join();
}

TEST_F(WebSocketTest, AnswersACloseWithItsCodeOnly) {
  Open();
  Send(kOpClose, EncodeClose(4001, "why"));
  EXPECT_TRUE(absl::IsOutOfRange(ws_->Read().status()));
  EXPECT_EQ(ws_->close_code(), 4001);
  EXPECT_EQ(ws_->close_reason(), "why");
  EXPECT_EQ(Received(), EncodeFrame(kOpClose, EncodeClose(4001, ""), true, std::nullopt));
  EXPECT_FALSE(ws_->WriteText("late").ok());
}

TEST_F(WebSocketTest, AnswersACloseWithItsReasonWhereAsked) {
  Open({.echo_reason = true});
  Send(kOpClose, EncodeClose(1000, "bye"));
  EXPECT_TRUE(absl::IsOutOfRange(ws_->Read().status()));
  EXPECT_EQ(Received(), EncodeFrame(kOpClose, EncodeClose(1000, "bye"), true, std::nullopt));
}

TEST_F(WebSocketTest, CloseWithoutACodeIs1005) {
  Open();
  Send(kOpClose, "");
  EXPECT_TRUE(absl::IsOutOfRange(ws_->Read().status()));
  EXPECT_EQ(ws_->close_code(), 1005);
}

TEST_F(WebSocketTest, OwnCloseGoesOutOnce) {
  Open();
  ASSERT_TRUE(ws_->Close(1000, "process exited").ok());
  EXPECT_FALSE(ws_->Close(1000).ok());
  EXPECT_EQ(Received(),
            EncodeFrame(kOpClose, EncodeClose(1000, "process exited"), true, std::nullopt));
  Send(kOpClose, EncodeClose(1000, ""));
  EXPECT_TRUE(absl::IsOutOfRange(ws_->Read().status()));
}

TEST_F(WebSocketTest, EndWithoutACloseFrameIs1006) {
  Open();
  raw_ = nullptr;
  EXPECT_TRUE(absl::IsUnavailable(ws_->Read().status()));
  EXPECT_EQ(ws_->close_code(), 1006);
}

TEST_F(WebSocketTest, ViolationsAndTooLongMessagesClose) {
  Open({.max_message_bytes = 10});
  Send(kOpContinuation, "x");
  EXPECT_TRUE(absl::IsUnavailable(ws_->Read().status()));
  EXPECT_THAT(Received(), ::testing::HasSubstr("\x03\xea"));  // 1002
  Open({.max_message_bytes = 10});
  Send(kOpText, "123456", false);
  Send(kOpContinuation, "123456");
  EXPECT_TRUE(absl::IsUnavailable(ws_->Read().status()));
  EXPECT_THAT(Received(), ::testing::HasSubstr("\x03\xf1"));  // 1009
}

TEST_F(WebSocketTest, WriteFilterSeesAndDrops) {
  Open();
  ws_->set_write_filter([](std::string& payload, const std::function<absl::Status()>& send) {
    if (payload == "no") return absl::UnavailableError("dropped");
    payload += "!";
    return send();
  });
  EXPECT_FALSE(ws_->WriteText("no").ok());
  EXPECT_TRUE(ws_->WriteText("yes").ok());
  EXPECT_EQ(Received(), EncodeFrame(kOpText, "yes!", true, std::nullopt));
}

TEST_F(WebSocketTest, BytesBehindTheHandshakeAreRead) {
  Open();
  WebSocket second(*socket_, EncodeFrame(kOpText, "early", true, kMask), {});
  EXPECT_EQ(second.Read()->data, "early");
}

TEST(Handshake, KeysAreFreshAndSixteenBytes) {
  EXPECT_EQ(WebSocketKey().size(), 24u);
  EXPECT_NE(WebSocketKey(), WebSocketKey());
  // Recorded with a real server.
  EXPECT_EQ(WebSocketAccept("iasnTDpxlQXml73Igfcq1Q=="), "bjHNkWT32pjJSUIS8N1nsqey28o=");
}

}  // namespace
}  // namespace bridge::local::http
