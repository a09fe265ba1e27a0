// SPDX-License-Identifier: Apache-2.0
//
// Tasks that are cancelled, one by one and in storms.
#include <memory>
#include <string>
#include <vector>

#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

class HttpCancelTest : public HttpTest {};

TEST_F(HttpCancelTest, CancelWorksInEveryState) {
  const SilentPort silent;
  Signal asked;
  RawServer no_answer([&asked](RawConnection& peer) {
    peer.ReadHead();
    asked.Raise();
    peer.AwaitClose();
  });
  Signal head_only;
  RawServer no_body([&head_only](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    head_only.Raise();
    peer.AwaitClose();
  });
  std::vector<absl::Status> results(4);
  Running connecting(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = "http://127.0.0.1:" + std::to_string(silent.port()),
                                .connect_timeout = absl::InfiniteDuration()});
    results[0] = (co_await transfer.Head()).status();
  });
  Running waiting(loop_, [&]() -> Task<void> {
    const HttpRequest request{.url = no_answer.Url()};
    results[1] = (co_await bridge::Fetch(client_, request, 100)).status();
  });
  Signal reading;
  Running body(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = no_body.Url()});
    std::string chunk;
    const bool first = co_await transfer.Read(&chunk);
    EXPECT_TRUE(first);
    reading.Raise();
    const bool second = co_await transfer.Read(&chunk);
    EXPECT_FALSE(second);
    results[2] = transfer.result();
  });
  Running uploading(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.method = "POST", .url = no_answer.Url(), .upload = true});
    const std::string data(64 << 20, 'u');
    const bool sent = co_await transfer.Send(data);
    EXPECT_FALSE(sent);
    results[3] = transfer.result();
  });
  asked.Await();
  head_only.Await();
  reading.Await();
  for (Running* running : {&connecting, &waiting, &body, &uploading}) {
    running->Cancel();
    running->Await();
  }
  for (const absl::Status& result : results) EXPECT_THAT(result, FailsWith("CANCELLED"));
}

// A task that is cancelled already gets nothing done, and the loop goes on.
TEST_F(HttpCancelTest, ACancelledTaskCannotStart) {
  RawServer server([](RawConnection& peer) {
    if (!peer.ReadHead().empty()) peer.Write(Answer("x"));
  });
  CancelSource cancel;
  cancel.Cancel();
  const auto response =
      RunTask(loop_, [&] { return bridge::Fetch(client_, {.url = server.Url()}, 100); }, &cancel);
  EXPECT_THAT(response, FailsWith("CANCELLED"));
  EXPECT_TRUE(Get(server.Url()).ok());
}

// ---- Storms

// libcurl closes the sockets of aborted connection attempts without telling us; their numbers come
// back at once as other sockets, ours and curl's. Everything must still be watched afterwards.
TEST_F(HttpCancelTest, AStormOfAbortedConnects) {
  const SilentPort silent;
  const std::string dead = "http://127.0.0.1:" + std::to_string(silent.port()) + "/";
  RawServer server([](RawConnection& peer) {
    while (!peer.ReadHead().empty()) peer.Write(Answer("alive"));
  });
  for (int round = 0; round < 10; ++round) {
    int alive = 0;
    RunTask(loop_, [&]() -> Task<void> {
      {
        std::vector<std::unique_ptr<Transfer>> attempts;
        attempts.reserve(50);
        for (int i = 0; i < 50; ++i) {
          attempts.push_back(std::make_unique<Transfer>(client_, HttpRequest{.url = dead}));
        }
        for (int i = 0; i < 3; ++i) co_await loop_.Yield();  // their connects are under way
      }
      for (int i = 0; i < 20; ++i) {
        const HttpRequest request{.url = server.Url()};
        const auto response = co_await bridge::Fetch(client_, request, 100);
        if (response.ok() && response->body == "alive") ++alive;
      }
    });
    EXPECT_EQ(alive, 20) << "round " << round;
  }
}

TEST_F(HttpCancelTest, AStormOfCancelledStreams) {
  RawServer server([](RawConnection& peer) {
    if (peer.ReadHead().empty()) return;
    peer.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    std::string events;
    for (int i = 0; i < 1000; ++i) events += "5\r\nhello\r\n";
    while (peer.Write(events)) continue;
  });
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Running>> streams;
    streams.reserve(20);
    for (int i = 0; i < 20; ++i) {
      streams.push_back(std::make_unique<Running>(loop_, [&]() -> Task<void> {
        Transfer transfer(client_, {.url = server.Url()});
        std::string chunk;
        while (co_await transfer.Read(&chunk)) continue;
        EXPECT_THAT(transfer.result(), FailsWith("CANCELLED"));
      }));
    }
    RunTask(loop_, [&]() -> Task<void> { (void)co_await loop_.Sleep(absl::Milliseconds(5)); });
    for (auto& stream : streams) stream->Cancel();
    for (auto& stream : streams) stream->Await();
  }
}

}  // namespace
}  // namespace bridge
