// SPDX-License-Identifier: Apache-2.0
//
// Bodies that a task sends piece by piece, and requests that must not be sent twice.
#include <optional>
#include <string>
#include <vector>

#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpUploadTest : public HttpTest {};

TEST_F(HttpUploadTest, WithoutASizeItTravelsInChunks) {
  std::string head;
  std::string body;
  RawServer server([&](RawConnection& peer) {
    head = peer.ReadHead();
    body = peer.ReadChunkedBody();
    peer.Write(Answer("stored"));
  });
  const auto answer = RunTask(loop_, [&]() -> Task<absl::StatusOr<std::string>> {
    Transfer transfer(client_, {.method = "POST", .url = server.Url("/files"), .upload = true});
    const bool first = co_await transfer.Send("one ");
    std::vector<std::string_view> parts = {"", "two ", "", "three ", ""};
    const bool second = co_await transfer.SendParts(std::move(parts));
    const bool empty = co_await transfer.Send("");
    EXPECT_TRUE(first && second && empty);
    transfer.CloseSend();
    co_return co_await transfer.ReadAll(100);
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "stored");
  EXPECT_EQ(body, "one two three ");
  EXPECT_THAT(head, StartsWith("POST /files HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Expect")));
}

TEST_F(HttpUploadTest, WithASizeItHasALength) {
  std::string head;
  std::string body;
  RawServer server([&](RawConnection& peer) {
    head = peer.ReadHead();
    body = peer.Read(300'000);
    peer.Write(Answer("stored"));
  });
  const auto answer = RunTask(loop_, [&]() -> Task<absl::StatusOr<std::string>> {
    Transfer transfer(client_, {.method = "PUT",
                                .url = server.Url(),
                                .headers = {{"Content-Type", "application/octet-stream"}},
                                .upload = true,
                                .upload_bytes = 300'000});
    const std::string piece(100'000, 'p');
    for (int i = 0; i < 3; ++i) {
      const bool sent = co_await transfer.Send(piece);
      EXPECT_TRUE(sent);
    }
    transfer.CloseSend();
    co_return co_await transfer.ReadAll(100);
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(body, std::string(300'000, 'p'));
  EXPECT_THAT(head, StartsWith("PUT / HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: 300000\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Type: application/octet-stream\r\n"));
}

TEST_F(HttpUploadTest, AnEmptyUploadIsAnUpload) {
  std::string body = "?";
  RawServer server([&](RawConnection& peer) {
    peer.ReadHead();
    body = peer.ReadChunkedBody();
    peer.Write(Answer("empty"));
  });
  const auto answer = RunTask(loop_, [&]() -> Task<absl::StatusOr<std::string>> {
    Transfer transfer(client_, {.method = "POST", .url = server.Url(), .upload = true});
    transfer.CloseSend();
    co_return co_await transfer.ReadAll(100);
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(body, "");
}

// A source that pauses between its pieces does not disturb anybody.
TEST_F(HttpUploadTest, ManyPausesInBetween) {
  std::string body;
  RawServer server([&](RawConnection& peer) {
    peer.ReadHead();
    body = peer.ReadChunkedBody();
    peer.Write(Answer("ok"));
  });
  std::string expected;
  const auto answer = RunTask(loop_, [&]() -> Task<absl::StatusOr<std::string>> {
    Transfer transfer(client_, {.method = "POST", .url = server.Url(), .upload = true});
    for (int i = 0; i < 200; ++i) {
      const std::string piece = std::to_string(i) + ",";
      expected += piece;
      const bool sent = co_await transfer.Send(piece);
      EXPECT_TRUE(sent);
      for (int turn = 0; turn < i % 4; ++turn) co_await loop_.Yield();
    }
    transfer.CloseSend();
    co_return co_await transfer.ReadAll(100);
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(body, expected);
}

TEST_F(HttpUploadTest, APeerThatDoesNotReadHoldsTheSenderBack) {
  Signal read_on;
  size_t received = 0;
  RawServer server([&](RawConnection& peer) {
    peer.ReadHead();
    read_on.Await();
    received = peer.ReadChunkedBody().size();
    peer.Write(Answer("ok"));
  });
  int sent = 0;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.method = "POST", .url = server.Url(), .upload = true});
    auto sender = [&]() -> Task<void> {
      const std::string piece(256 * 1024, 's');
      for (; sent < 200; ++sent) {
        const bool ok = co_await transfer.Send(piece);
        if (!ok) break;
      }
      transfer.CloseSend();
      const auto answer = co_await transfer.ReadAll(100);
      EXPECT_TRUE(answer.ok());
    };
    auto watcher = [&]() -> Task<void> {
      int before = -1;
      while (before != sent) {
        before = sent;
        (void)co_await loop_.Sleep(absl::Milliseconds(100));
      }
      EXPECT_LT(sent, 150);
      read_on.Raise();
      (void)co_await loop_.Sleep(absl::InfiniteDuration());
    };
    co_await RunBoth(sender, watcher);
  });
  EXPECT_EQ(sent, 200);
  EXPECT_EQ(received, 200u * 256 * 1024);
}

// The peer may have its say before it has read everything: the sender stops, the answer counts.
TEST_F(HttpUploadTest, AnEarlyAnswerEndsTheUpload) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge");
    peer.AwaitClose();
  });
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.method = "POST", .url = server.Url(), .upload = true});
    const std::string piece(256 * 1024, 's');
    int sent = 0;
    while (sent < 10'000) {
      const bool ok = co_await transfer.Send(piece);
      if (!ok) break;
      ++sent;
    }
    EXPECT_LT(sent, 10'000);
    const auto head = co_await transfer.Head();
    EXPECT_TRUE(head.ok()) << head.status();
    EXPECT_EQ(head->status, 413);
  });
}

// Both tasks wait when the exchange ends; both must be told.
TEST_F(HttpUploadTest, TheEndWakesTheReaderAndTheSender) {
  Signal uploading;
  RawServer server([&uploading](RawConnection& peer) {
    peer.ReadHead();
    uploading.Await();
    peer.Reset();
  });
  bool sent = true;
  bool read = true;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.method = "POST", .url = server.Url(), .upload = true});
    int ended = 0;
    Waiter both;
    auto count = [&] {
      if (++ended == 2) both.Notify(true);
    };
    const std::string data(64 << 20, 'd');
    Spawn(nullptr, [&]() -> Task<void> { sent = co_await transfer.Send(data); }, count);
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          std::string chunk;
          read = co_await transfer.Read(&chunk);
        },
        count);
    uploading.Raise();
    if (ended < 2) (void)co_await both.Wait();
    EXPECT_THAT(transfer.result(), FailsWith("UPSTREAM_UNAVAILABLE"));
  });
  EXPECT_FALSE(sent);
  EXPECT_FALSE(read);
}

TEST_F(HttpUploadTest, TheAnnouncedSizeIsKept) {
  RawServer server([](RawConnection& peer) { peer.AwaitClose(); });
  const auto upload = [&](size_t bytes) {
    return RunTask(loop_, [&]() -> Task<absl::Status> {
      Transfer transfer(
          client_, {.method = "POST", .url = server.Url(), .upload = true, .upload_bytes = 1000});
      (void)co_await transfer.Send(std::string(bytes, 'x'));
      transfer.CloseSend();
      (void)co_await transfer.Head();
      co_return transfer.result();
    });
  };
  EXPECT_THAT(upload(999), FailsWith("INTERNAL"));
  EXPECT_THAT(upload(1001), FailsWith("INTERNAL"));
}

// ---- Never twice

// A peer that keeps the first connection alive and lets it die under the second request, by FIN or
// by RST. Counts what arrives.
class DyingServer {
 public:
  explicit DyingServer(bool reset)
      : server_([this, reset](RawConnection& peer) {
          if (peer.index() > 0) {
            if (!peer.ReadHead().empty()) {
              ++requests;
              peer.Write(Answer("second connection"));
            }
            return;
          }
          peer.ReadHead();
          peer.Write(Answer("first"));
          if (!peer.ReadHead().empty()) ++requests;
          if (reset) peer.Reset();
        }) {}

  std::string Url() const { return server_.Url(); }
  void AwaitScripts() { server_.AwaitScripts(); }

  std::atomic<int> requests{0};  // after the first

 private:
  RawServer server_;
};

TEST_F(HttpUploadTest, APostThatMayHaveBeenProcessedIsNotRepeated) {
  for (const bool reset : {false, true}) {
    DyingServer server(reset);
    ASSERT_TRUE(Get(server.Url()).ok());
    const auto response = Fetch({.method = "POST", .url = server.Url(), .body = "create"});
    EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
    EXPECT_THAT(response, HasMetadata("phase", "answer"));
    EXPECT_THAT(response, SaysInMessage("was not repeated"));
    EXPECT_EQ(server.requests, 1);
  }
}

TEST_F(HttpUploadTest, AGetIsRepeated) {
  for (const bool reset : {false, true}) {
    DyingServer server(reset);
    ASSERT_TRUE(Get(server.Url()).ok());
    const auto response = Get(server.Url());
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "second connection");
    EXPECT_EQ(server.requests, 2);
  }
}

TEST_F(HttpUploadTest, TheCallerDecidesAboutRepeating) {
  {
    DyingServer server(false);
    ASSERT_TRUE(Get(server.Url()).ok());
    EXPECT_THAT(Fetch({.url = server.Url(), .resend = Resend::kNever}),
                FailsWith("UPSTREAM_UNAVAILABLE"));
    EXPECT_EQ(server.requests, 1);
  }
  DyingServer server(false);
  ASSERT_TRUE(Get(server.Url()).ok());
  EXPECT_TRUE(
      Fetch({.method = "POST", .url = server.Url(), .body = "x", .resend = Resend::kAlways}).ok());
  EXPECT_EQ(server.requests, 2);
}

TEST_F(HttpUploadTest, AStreamedUploadIsNeverRepeated) {
  DyingServer server(false);
  ASSERT_TRUE(Get(server.Url()).ok());
  const absl::Status result = RunTask(loop_, [&]() -> Task<absl::Status> {
    Transfer transfer(client_, {.method = "PUT", .url = server.Url(), .upload = true});
    (void)co_await transfer.Send("data");
    transfer.CloseSend();
    (void)co_await transfer.Head();
    co_return transfer.result();
  });
  EXPECT_THAT(result, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_EQ(server.requests, 1);
}

// A connection that the peer closed while it was idle is no reason to fail: nothing was sent on it.
TEST_F(HttpUploadTest, APostAfterAnIdleCloseGoesToAFreshConnection) {
  std::vector<std::string> heads;
  Signal closed;
  RawServer server([&](RawConnection& peer) {
    heads.push_back(peer.ReadHead());
    peer.Write(Answer(std::to_string(peer.index())));
    peer.Close();
    closed.Raise();
  });
  ASSERT_TRUE(Get(server.Url()).ok());
  closed.Await();
  const auto response = Fetch({.method = "POST", .url = server.Url(), .body = "create"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "1");
  server.AwaitScripts();
  EXPECT_EQ(heads.size(), 2u);
}

}  // namespace
}  // namespace bridge
