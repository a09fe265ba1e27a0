// SPDX-License-Identifier: Apache-2.0
//
// Time and backpressure: what a transfer does while nothing moves.
#include <atomic>
#include <string>

#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

class HttpStreamTest : public HttpTest {};

// A reader that does not read: the peer stands still, and so does memory.
TEST_F(HttpStreamTest, APausedReaderStopsThePeer) {
  std::atomic<size_t> accepted{0};
  Signal full;
  RawServer server([&](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.0 200 OK\r\n\r\n");
    accepted = peer.WriteUntilFull();
    full.Raise();
    peer.AwaitClose();
  });
  size_t held = 0;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url(), .chunk_bytes = 64 * 1024, .max_chunks = 4});
    (void)co_await transfer.Head();
    auto until_full = [&]() -> Task<void> {
      while (accepted == 0) (void)co_await loop_.Sleep(absl::Milliseconds(20));
    };
    co_await until_full();
    // What the transfer holds itself is what can be read without waiting for the peer.
    std::string chunk;
    for (int i = 0; i < 4; ++i) {
      const bool more = co_await transfer.Read(&chunk);
      EXPECT_TRUE(more);
      EXPECT_LE(chunk.size(), size_t{64 * 1024 + 16 * 1024});
      held += chunk.size();
    }
  });
  full.Await();
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, size_t{64} << 20) << "the peer could write without end";
  EXPECT_LE(held, size_t{5} * 64 * 1024);
}

TEST_F(HttpStreamTest, ASlowReaderGetsEveryByte) {
  std::string expected;
  for (int i = 0; i < 300'000; ++i) expected += static_cast<char>('a' + i % 23);
  RawServer server([&](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < expected.size(); at += 1000) {
      peer.Write("3e8\r\n" + expected.substr(at, 1000) + "\r\n");
    }
    peer.Write("0\r\n\r\n");
  });
  std::string got;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url(), .chunk_bytes = 700, .max_chunks = 2});
    std::string chunk;
    while (co_await transfer.Read(&chunk)) {
      got += chunk;
      for (int i = 0; i < 3; ++i) co_await loop_.Yield();
    }
    EXPECT_TRUE(transfer.result().ok());
  });
  EXPECT_EQ(got, expected);
}

// ---- Timeouts, on a clock that the test moves

class HttpTimeoutTest : public HttpFakeTimeTest {
 protected:
  // Starts a fetch, waits for `moment`, lets `after` pass and returns how it ended.
  absl::StatusOr<HttpResponse> FetchWhile(HttpRequest request, Signal& moment,
                                          absl::Duration after) {
    absl::StatusOr<HttpResponse> response = absl::UnknownError("did not end");
    Signal ended;
    loop_.Post([&] {
      Spawn(
          nullptr,
          [&]() -> Task<void> { response = co_await Fetch(client_, std::move(request), 1 << 20); },
          [&] { ended.Raise(); });
    });
    moment.Await();
    loop_.RunAndWait([] {});
    clock_.Advance(after);
    ended.Await();
    return response;
  }
};

TEST_F(HttpTimeoutTest, Connect) {
  const SilentPort silent;
  Signal started;
  started.Raise();
  const auto response = FetchWhile({.url = "http://127.0.0.1:" + std::to_string(silent.port()),
                                    .connect_timeout = absl::Seconds(7)},
                                   started, absl::Seconds(7));
  EXPECT_THAT(response, FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_THAT(response, HasMetadata("phase", "connect"));
  EXPECT_THAT(response, SaysInMessage("accepted no connection within 7s"));
}

TEST_F(HttpTimeoutTest, TotalBeforeTheAnswer) {
  Signal asked;
  RawServer server([&asked](RawConnection& peer) {
    peer.ReadHead();
    asked.Raise();
    peer.AwaitClose();
  });
  const auto response = FetchWhile({.url = server.Url(), .total_timeout = absl::Seconds(30)}, asked,
                                   absl::Seconds(30));
  EXPECT_THAT(response, FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_THAT(response, HasMetadata("phase", "answer"));
  EXPECT_THAT(response, SaysInMessage("within 30s"));
}

TEST_F(HttpTimeoutTest, IdleInsideTheBody) {
  Signal sent;
  RawServer server([&sent](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
    sent.Raise();
    peer.AwaitClose();
  });
  const auto response =
      FetchWhile({.url = server.Url(), .idle_timeout = absl::Seconds(15)}, sent, absl::Seconds(16));
  EXPECT_THAT(response, FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_THAT(response, HasMetadata("phase", "answer"));
  EXPECT_THAT(response, SaysInMessage("sent nothing within 15s"));
}

// Every byte starts the idle time again; the total time does not care.
TEST_F(HttpTimeoutTest, BytesKeepAStreamAlive) {
  Signal go[6];
  RawServer server([&go](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
    for (Signal& next : go) {
      next.Await();
      peer.Write(".");
    }
  });
  absl::Status result = absl::UnknownError("did not end");
  int pieces = 0;
  Signal read[6];
  Signal ended;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          Transfer transfer(client_, {.url = server.Url(), .idle_timeout = absl::Seconds(10)});
          std::string chunk;
          while (co_await transfer.Read(&chunk)) read[pieces++].Raise();
          result = transfer.result();
        },
        [&] { ended.Raise(); });
  });
  for (int i = 0; i < 6; ++i) {
    go[i].Raise();
    read[i].Await();
    loop_.RunAndWait([] {});
    clock_.Advance(absl::Seconds(9));
  }
  ended.Await();
  EXPECT_TRUE(result.ok()) << result;
}

// While our own reader pauses the peer is not idle: it cannot send.
TEST_F(HttpTimeoutTest, OurOwnPauseIsNotThePeersSilence) {
  Signal full;
  RawServer server([&full](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.0 200 OK\r\n\r\n");
    peer.WriteUntilFull();
    full.Raise();
    peer.Write("the end");
    peer.EndWriting();
    peer.AwaitClose();
  });
  Signal go_on;
  Signal ended;
  absl::Status result = absl::UnknownError("did not end");
  std::string tail;
  Waiter resume;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          Transfer transfer(client_, {.url = server.Url(), .idle_timeout = absl::Seconds(10)});
          (void)co_await transfer.Head();
          (void)co_await resume.Wait();
          std::string chunk;
          while (co_await transfer.Read(&chunk)) tail = (tail + chunk).substr(tail.size() / 2);
          result = transfer.result();
        },
        [&] { ended.Raise(); });
  });
  full.Await();
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(60));
    loop_.RunAndWait([] {});
  }
  loop_.Post([&resume] { resume.Notify(true); });
  ended.Await();
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_THAT(tail, ::testing::EndsWith("the end"));
}

// While our own source has nothing to send, the peer is right to say nothing. After CloseSend the
// peer owes an answer.
TEST_F(HttpTimeoutTest, AnUploadThatWaitsForUsIsNotIdle) {
  Signal first;
  RawServer server([&first](RawConnection& peer) {
    peer.ReadHead();
    first.Raise();
    peer.ReadChunkedBody();
    peer.AwaitClose();
  });
  absl::Status result;
  Signal ended;
  Waiter resume;
  Signal closed;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          Transfer transfer(client_, {.method = "POST",
                                      .url = server.Url(),
                                      .upload = true,
                                      .idle_timeout = absl::Seconds(10)});
          const bool sent = co_await transfer.Send("a");
          EXPECT_TRUE(sent);
          (void)co_await resume.Wait();
          EXPECT_FALSE(transfer.done());
          transfer.CloseSend();
          closed.Raise();
          (void)co_await transfer.Head();
          result = transfer.result();
        },
        [&] { ended.Raise(); });
  });
  first.Await();
  for (int i = 0; i < 5; ++i) {
    RunTask(loop_, [&]() -> Task<void> { co_await loop_.Yield(); });
    clock_.Advance(absl::Seconds(60));
  }
  loop_.Post([&resume] { resume.Notify(true); });
  closed.Await();
  loop_.RunAndWait([] {});
  clock_.Advance(absl::Seconds(11));
  ended.Await();
  EXPECT_THAT(result, FailsWith("UPSTREAM_TIMEOUT"));
}

TEST_F(HttpTimeoutTest, WithoutLimitsTheTransferWaitsForEver) {
  Signal asked;
  Signal answer;
  RawServer server([&](RawConnection& peer) {
    peer.ReadHead();
    asked.Raise();
    answer.Await();
    peer.Write(Answer("late"));
  });
  absl::StatusOr<HttpResponse> response = absl::UnknownError("did not end");
  Signal ended;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          const HttpRequest request{.url = server.Url()};
          response = co_await Fetch(client_, request, 100);
        },
        [&] { ended.Raise(); });
  });
  asked.Await();
  loop_.RunAndWait([] {});
  clock_.Advance(absl::Hours(1000));
  loop_.RunAndWait([] {});
  answer.Raise();
  ended.Await();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "late");
}

}  // namespace
}  // namespace bridge
