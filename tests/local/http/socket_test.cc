// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

namespace bridge::local::http {
namespace {

struct Pair {
  std::unique_ptr<Socket> client;
  std::unique_ptr<Socket> server;
};

Pair Connect() {
  int port = 0;
  const auto listener = ListenTcp("127.0.0.1", &port);
  EXPECT_TRUE(listener.ok()) << listener.status();
  const auto client = ConnectTcp("127.0.0.1", port, absl::Seconds(5));
  EXPECT_TRUE(client.ok()) << client.status();
  const int server = accept4(*listener, nullptr, nullptr, SOCK_CLOEXEC);
  close(*listener);
  return {std::make_unique<Socket>(*client), std::make_unique<Socket>(server)};
}

std::string ReadSome(Socket& socket) {
  std::array<char, 100> bytes;
  const auto n = socket.Read(bytes.data(), bytes.size(), absl::Seconds(5));
  return n.ok() ? std::string(bytes.data(), *n) : "error: " + std::string(n.status().message());
}

TEST(Socket, ReadsWhatTheOtherEndWrites) {
  Pair pair = Connect();
  ASSERT_TRUE(pair.client->Write("hello").ok());
  EXPECT_EQ(ReadSome(*pair.server), "hello");
  pair.client = nullptr;
  EXPECT_EQ(ReadSome(*pair.server), "");
}

TEST(Socket, ReadHasADeadline) {
  Pair pair = Connect();
  std::array<char, 8> bytes;
  const auto n = pair.server->Read(bytes.data(), bytes.size(), absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(n.status()));
  const auto none = pair.server->Read(bytes.data(), bytes.size(), absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(none.status()));
}

TEST(Socket, WriteHasADeadlineWhenNobodyReads) {
  Pair pair = Connect();
  const std::string much(64 << 20, 'x');
  EXPECT_TRUE(absl::IsDeadlineExceeded(pair.server->Write(much, absl::Milliseconds(50))));
}

TEST(Socket, ShutdownWakesAReader) {
  Pair pair = Connect();
  std::thread reader([&] {
    std::array<char, 8> bytes;
    const auto n = pair.server->Read(bytes.data(), bytes.size());
    EXPECT_TRUE(!n.ok() || *n == 0);
  });
  pair.server->Shutdown();
  reader.join();
  EXPECT_TRUE(pair.server->PeerClosed());
}

TEST(Socket, NoticesThatThePeerHasGone) {
  Pair pair = Connect();
  EXPECT_FALSE(pair.server->PeerClosed());
  EXPECT_FALSE(pair.server->WaitPeerClosed(absl::Milliseconds(10)));
  ASSERT_TRUE(pair.client->Write("unread").ok());
  EXPECT_FALSE(pair.server->PeerClosed()) << "unread bytes are not an end";
  EXPECT_TRUE(pair.server->WaitReadable(absl::Seconds(5)));
  pair.client = nullptr;
  EXPECT_TRUE(pair.server->WaitPeerClosed(absl::Seconds(5)));
}

TEST(Socket, ResetIsAReset) {
  Pair pair = Connect();
  pair.server->Reset();
  const std::string got = ReadSome(*pair.client);
  EXPECT_EQ(got, "error: read: Connection reset by peer");
}

TEST(Socket, WritesInPiecesOfTheGivenSize) {
  Pair pair = Connect();
  pair.server->set_max_write(1);
  std::thread writer([&] { EXPECT_TRUE(pair.server->Write("abc").ok()); });
  std::string got;
  while (got.size() < 3) got += ReadSome(*pair.client);
  writer.join();
  EXPECT_EQ(got, "abc");
}

TEST(Socket, GentleCloseDeliversDespiteUnreadInput) {
  Pair pair = Connect();
  ASSERT_TRUE(pair.client->Write(std::string(100'000, 'x')).ok());
  ASSERT_TRUE(pair.server->Write("answer").ok());
  std::thread closer([&] { pair.server->CloseGently(); });
  EXPECT_EQ(ReadSome(*pair.client), "answer");
  EXPECT_EQ(ReadSome(*pair.client), "");
  pair.client = nullptr;
  closer.join();
}

TEST(Connect, RefusedAndUnparsable) {
  int port = 0;
  const auto listener = ListenTcp("127.0.0.1", &port);
  ASSERT_TRUE(listener.ok());
  close(*listener);
  EXPECT_TRUE(absl::IsUnavailable(ConnectTcp("127.0.0.1", port, absl::Seconds(5)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectTcp("a.name", 1, absl::Seconds(5)).status()));
}

TEST(Listen, OnIpv6AndATakenPort) {
  int port = 0;
  const auto listener = ListenTcp("::1", &port);
  if (listener.ok()) {
    EXPECT_GT(port, 0);
    EXPECT_TRUE(absl::IsUnavailable(ListenTcp("::1", &port).status()));
    close(*listener);
  }
}

TEST(HostPort, Parses) {
  EXPECT_EQ(ParseHostPort("127.0.0.1:80")->port, 80);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseHostPort("localhost:8080")->host, "localhost");
  for (const char* bad : {"", "host", ":80", "h:", "h:x", "h:65536", "h:-1", "::1:80", "h:1x"}) {
    EXPECT_FALSE(ParseHostPort(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace bridge::local::http
