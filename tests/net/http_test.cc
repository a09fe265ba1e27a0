// SPDX-License-Identifier: Apache-2.0
//
// What goes over the wire, and what comes back.
#include "bridge/net/http.h"

#include <string>
#include <vector>

#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(HttpTest, GetSendsAPlainRequest) {
  std::string request;
  RawServer server([&request](RawConnection& peer) {
    request = peer.ReadHead();
    peer.Write("HTTP/1.1 200 Fine\r\nX-Kind: a\r\nContent-Length: 5\r\nx-kind:  b \r\n\r\nhello");
  });
  const auto response = Fetch({.url = server.Url("/a/b?c=d"), .headers = {{"X-Own", "1"}}});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hello");
  EXPECT_EQ(response->headers.Get("X-KIND"), "a");
  EXPECT_EQ(response->headers.size(), 3u);
  EXPECT_THAT(request, StartsWith("GET /a/b?c=d HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_THAT(request, HasSubstr("\r\nX-Own: 1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nUser-Agent: sandbox-bridge\r\n"));
  EXPECT_THAT(request, AllOf(Not(HasSubstr("Expect")), Not(HasSubstr("Accept-Encoding")),
                             Not(HasSubstr("Content-Length")), Not(HasSubstr("Upgrade"))));
}

TEST_F(HttpTest, PostSendsItsBody) {
  std::string request;
  std::string body;
  RawServer server([&](RawConnection& peer) {
    request = peer.ReadHead();
    body = peer.Read(2'000'000);
    peer.Write("HTTP/1.1 204 No Content\r\n\r\n");
  });
  const auto response = Fetch({.method = "POST",
                               .url = server.Url("/command"),
                               .headers = {{"Content-Type", "application/json"}},
                               .body = std::string(2'000'000, 'j')});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 204);
  EXPECT_THAT(request, StartsWith("POST /command HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Length: 2000000\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(request, Not(HasSubstr("Expect")));
  EXPECT_EQ(body, std::string(2'000'000, 'j'));
}

TEST_F(HttpTest, AnEmptyPostSaysSoAndInventsNoContentType) {
  std::string request;
  RawServer server([&request](RawConnection& peer) {
    request = peer.ReadHead();
    peer.Write(Answer(""));
  });
  ASSERT_TRUE(Fetch({.method = "POST", .url = server.Url()}).ok());
  EXPECT_THAT(request, HasSubstr("\r\nContent-Length: 0\r\n"));
  EXPECT_THAT(request, Not(HasSubstr("Content-Type")));
}

TEST_F(HttpTest, OtherMethodsKeepTheirNames) {
  for (const std::string method : {"DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"}) {
    std::string request;
    RawServer server([&request](RawConnection& peer) {
      request = peer.ReadHead();
      peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    ASSERT_TRUE(Fetch({.method = method, .url = server.Url()}).ok()) << method;
    EXPECT_THAT(request, StartsWith(method + " / HTTP/1.1\r\n"));
  }
}

// The answer to HEAD has a length and no body.
TEST_F(HttpTest, HeadExpectsNoBody) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    peer.AwaitClose();
  });
  const auto response = Fetch({.method = "HEAD", .url = server.Url()});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->headers.Get("content-length"), "100");
  EXPECT_EQ(response->body, "");
}

TEST_F(HttpTest, EmptyHeaderValuesTravel) {
  std::string request;
  RawServer server([&request](RawConnection& peer) {
    request = peer.ReadHead();
    peer.Write(Answer(""));
  });
  ASSERT_TRUE(Fetch({.url = server.Url(), .headers = {{"X-Empty", ""}}}).ok());
  EXPECT_THAT(request, HasSubstr("\r\nX-Empty:\r\n"));
}

TEST_F(HttpTest, FramingHeadersOfTheCallerAreIgnored) {
  std::string request;
  RawServer server([&request](RawConnection& peer) {
    request = peer.ReadHead();
    peer.Read(2);
    peer.Write(Answer(""));
  });
  ASSERT_TRUE(Fetch({.method = "POST",
                     .url = server.Url(),
                     .headers = {{"content-length", "7"},
                                 {"Transfer-encoding", "chunked"},
                                 {"Expect", "100-continue"}},
                     .body = "ab"})
                  .ok());
  EXPECT_THAT(request, HasSubstr("\r\nContent-Length: 2\r\n"));
  EXPECT_THAT(request, AllOf(Not(HasSubstr("chunked")), Not(HasSubstr("100-continue"))));
}

TEST_F(HttpTest, NobodySmugglesInAHeader) {
  RawServer server([](RawConnection& peer) { peer.AwaitClose(); });
  for (const std::string& value : {std::string("a\r\nX-Evil: 1"), std::string("a\nb"),
                                   std::string("a\0b", 3), std::string("\x7f")}) {
    const auto response = Fetch({.url = server.Url(), .headers = {{"X-Own", value}}});
    EXPECT_THAT(response, FailsWith("INVALID_ARGUMENT"));
    EXPECT_THAT(response, SaysInMessage("X-Own"));
  }
  EXPECT_THAT(Fetch({.url = server.Url(), .headers = {{"X Own", "1"}}}),
              FailsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(Fetch({.url = server.Url(), .headers = {{"", "1"}}}), FailsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(Fetch({.method = "GET / HTTP/1.1\r\nX: ", .url = server.Url()}),
              FailsWith("INVALID_ARGUMENT"));
  EXPECT_EQ(server.accepted(), 0);
}

TEST_F(HttpTest, RefusesUrlsThatAreNotHttp) {
  for (const std::string url : {"", "127.0.0.1", "file:///etc/passwd", "ftp://127.0.0.1/",
                                "http://", "http://a b/", "http://127.0.0.1:99999/"}) {
    EXPECT_THAT(Get(url), FailsWith("INVALID_ARGUMENT")) << url;
  }
}

TEST_F(HttpTest, AnErrorStatusIsNoFailure) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops");
  });
  const auto response = Get(server.Url());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 500);
  EXPECT_EQ(response->body, "oops");
}

TEST_F(HttpTest, RedirectsAreNotFollowed) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 302 Found\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n");
    peer.AwaitClose();
  });
  const auto response = Get(server.Url());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(response->headers.Get("Location"), "/else");
}

TEST_F(HttpTest, BodiesAreNotDecompressed) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write(Answer("\x1f\x8b raw", "Content-Encoding: gzip\r\n"));
  });
  const auto response = Get(server.Url());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "\x1f\x8b raw");
}

TEST_F(HttpTest, InterimAnswersAreForgotten) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 100 Continue\r\nX-Old: 1\r\n\r\n");
    peer.Write("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
    peer.Write("HTTP/1.1 201 Created\r\nContent-Length: 1\r\nX-New: 1\r\n\r\nz");
  });
  const auto response = Get(server.Url());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 201);
  EXPECT_FALSE(response->headers.Has("X-Old"));
  EXPECT_FALSE(response->headers.Has("Link"));
  EXPECT_TRUE(response->headers.Has("X-New"));
}

TEST_F(HttpTest, ChunkedBodiesAndTrailers) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n");
    peer.Write("5;ext=1\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nX-Sum: 1\r\n\r\n");
  });
  const auto response = Get(server.Url());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "hello world");
  EXPECT_FALSE(response->headers.Has("X-Sum"));
}

TEST_F(HttpTest, ABodyMayEndWithTheConnection) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.0 200 OK\r\n\r\nall of it");
  });
  const auto response = Get(server.Url());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "all of it");
}

// Whichever way an answer is cut into packets, it is the same answer.
TEST_F(HttpTest, AnswersMayBeCutAnywhere) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n"
      "0\r\n\r\n";
  RawServer server([&answer](RawConnection& peer) {
    for (size_t cut = 1; cut < answer.size(); ++cut) {
      if (peer.ReadHead().empty()) return;
      peer.Write(answer.substr(0, cut));
      peer.Write(answer.substr(cut));
    }
  });
  for (size_t cut = 1; cut < answer.size(); ++cut) {
    const auto response = Get(server.Url());
    ASSERT_TRUE(response.ok()) << response.status() << " at " << cut;
    EXPECT_EQ(response->body, "abcde");
    EXPECT_EQ(response->headers.Get("X-A"), "b");
  }
}

TEST_F(HttpTest, ConnectionsAreUsedAgain) {
  RawServer server([](RawConnection& peer) {
    while (!peer.ReadHead().empty()) peer.Write(Answer(std::to_string(peer.index())));
  });
  for (int i = 0; i < 20; ++i) {
    const auto response = Get(server.Url());
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "0");
  }
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(HttpTest, HeadComesBeforeTheBody) {
  Signal head_seen;
  RawServer server([&head_seen](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-A: 1\r\n\r\n");
    head_seen.Await();
    peer.Write("body");
  });
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url()});
    const auto head = co_await transfer.Head();
    EXPECT_TRUE(head.ok());
    EXPECT_EQ(head->status, 200);
    EXPECT_EQ(head->headers.Get("x-a"), "1");
    EXPECT_FALSE(transfer.done());
    head_seen.Raise();
    const auto body = co_await transfer.ReadAll(100);
    EXPECT_TRUE(body.ok());
    EXPECT_EQ(*body, "body");
    EXPECT_TRUE(transfer.done());
    const auto again = co_await transfer.Head();
    EXPECT_TRUE(again.ok());
  });
}

TEST_F(HttpTest, ReadYieldsPiecesAsTheyCome) {
  Signal first_read;
  RawServer server([&first_read](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    first_read.Await();
    peer.Write("3\r\ntwo\r\n0\r\n\r\n");
  });
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url()});
    std::string chunk;
    bool more = co_await transfer.Read(&chunk);
    EXPECT_TRUE(more);
    EXPECT_EQ(chunk, "one");
    first_read.Raise();
    more = co_await transfer.Read(&chunk);
    EXPECT_TRUE(more);
    EXPECT_EQ(chunk, "two");
    more = co_await transfer.Read(&chunk);
    EXPECT_FALSE(more);
    EXPECT_TRUE(transfer.result().ok());
  });
}

// What arrives together is handed over together: thousands of small chunks, few wake-ups.
TEST_F(HttpTest, SmallChunksComeInBatches) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    std::string burst = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 4000; ++i) burst += "4\r\nabc\n\r\n";
    peer.Write(burst + "0\r\n\r\n");
  });
  size_t bytes = 0;
  int pieces = 0;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url()});
    std::string chunk;
    while (co_await transfer.Read(&chunk)) {
      bytes += chunk.size();
      ++pieces;
    }
    EXPECT_TRUE(transfer.result().ok());
  });
  EXPECT_EQ(bytes, 16000u);
  EXPECT_LT(pieces, 40);
}

TEST_F(HttpTest, WholeChunksAreWhole) {
  const std::string body(300'000, 'w');
  RawServer server([&body](RawConnection& peer) {
    peer.ReadHead();
    peer.Write(Answer(body));
  });
  std::vector<size_t> sizes;
  std::string all;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url(), .chunk_bytes = 100'000, .whole_chunks = true});
    std::string chunk;
    while (co_await transfer.Read(&chunk)) {
      sizes.push_back(chunk.size());
      all += chunk;
    }
  });
  EXPECT_EQ(all, body);
  ASSERT_FALSE(sizes.empty());
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    EXPECT_GE(sizes[i], 100'000u);
    EXPECT_LE(sizes[i], 100'000u + 16'384u);
  }
}

// Handles of curl are used again; nothing of the last request may stick to them.
TEST_F(HttpTest, RequestsOnAUsedHandleAreClean) {
  std::vector<std::string> heads;
  RawServer server([&heads](RawConnection& peer) {
    for (int i = 0; i < 3; ++i) {
      heads.push_back(peer.ReadHead());
      if (i == 0) peer.Read(3);
      peer.Write(i == 1 ? "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" : Answer("ok"));
    }
  });
  ASSERT_TRUE(Fetch({.method = "POST",
                     .url = server.Url(),
                     .headers = {{"X-Secret", "1"}},
                     .body = "abc",
                     .receive_buffer = 256 * 1024})
                  .ok());
  ASSERT_TRUE(Fetch({.method = "HEAD", .url = server.Url()}).ok());
  const auto last = Get(server.Url());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->body, "ok");
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_THAT(heads[2], StartsWith("GET / "));
  EXPECT_THAT(heads[2], AllOf(Not(HasSubstr("X-Secret")), Not(HasSubstr("Content-Length"))));
}

TEST_F(HttpTest, ManyAtOnce) {
  RawServer server([](RawConnection& peer) {
    while (!peer.ReadHead().empty()) peer.Write(Answer("fine"));
  });
  int fine = 0;
  int left = 200;
  Signal all;
  loop_.Post([&] {
    for (int i = 0; i < 200; ++i) {
      Spawn(
          nullptr,
          [&]() -> Task<void> {
            const HttpRequest request{.url = server.Url()};
            const auto response = co_await bridge::Fetch(client_, request, 100);
            if (response.ok() && response->body == "fine") ++fine;
          },
          [&] {
            if (--left == 0) all.Raise();
          });
    }
  });
  all.Await();
  EXPECT_EQ(fine, 200);
}

}  // namespace
}  // namespace bridge
