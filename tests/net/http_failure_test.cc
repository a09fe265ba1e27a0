// SPDX-License-Identifier: Apache-2.0
//
// Everything that can go wrong between two machines, and the name it gets.
#include <functional>
#include <string>
#include <vector>

#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HttpFailureTest : public HttpTest {
 protected:
  // What a GET gives when the peer answers with these bytes and then closes.
  absl::StatusOr<HttpResponse> GetFromPeerThatSays(std::string bytes) {
    RawServer server([&bytes](RawConnection& peer) {
      peer.ReadHead();
      peer.Write(bytes);
      peer.EndWriting();
      peer.AwaitClose();
    });
    return Get(server.Url());
  }
};

TEST_F(HttpFailureTest, NobodyListens) {
  const ClosedPort closed;
  const std::string host = "127.0.0.1:" + std::to_string(closed.port());
  const auto response = Get("http://" + host + "/secret?token=secret");
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(response, HasMetadata("host", host));
  EXPECT_THAT(response, HasMetadata("phase", "connect"));
  EXPECT_THAT(response, SaysInMessage(host + " accepts no connection: Connection refused"));
}

TEST_F(HttpFailureTest, NoSuchName) {
  const std::string name = std::string(70, 'x') + ".invalid";  // no label may be so long
  const auto response = Get("http://" + name + "/");
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(response, HasMetadata("phase", "connect"));
  EXPECT_THAT(response, SaysInMessage("is not a known name"));
}

TEST_F(HttpFailureTest, MessagesHoldNoSecrets) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nX-Token: secret\r\n\r\nsecret");
  });
  const std::string url =
      "http://user:secret@127.0.0.1:" + std::to_string(server.port()) + "/secret/path?token=secret";
  const auto response = Fetch({.method = "POST",
                               .url = url,
                               .headers = {{"OPEN-SANDBOX-API-KEY", "secret"}},
                               .body = "secret"});
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(response.status().ToString(), Not(HasSubstr("secret")));
  EXPECT_THAT(response, HasMetadata("host", "127.0.0.1:" + std::to_string(server.port())));
}

TEST_F(HttpFailureTest, ClosedWithoutAnAnswer) {
  const auto response = GetFromPeerThatSays("");
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(response, HasMetadata("phase", "answer"));
  EXPECT_THAT(response, SaysInMessage("without an answer"));
}

TEST_F(HttpFailureTest, ResetBeforeTheAnswer) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Reset();
  });
  const auto response = Get(server.Url());
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(response, HasMetadata("phase", "answer"));
  EXPECT_THAT(response, SaysInMessage("before it answered"));
}

TEST_F(HttpFailureTest, TruncatedAnswersNeverLookComplete) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (const std::string& bytes : {
           head,
           head + "Content-Length: 10\r\n",
           head + "Content-Length: 10\r\n\r\n",
           head + "Content-Length: 10\r\n\r\n123456789",
           head + "Transfer-Encoding: chunked\r\n\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n5",
           head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
           head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde",
           head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n",
       }) {
    const auto response = GetFromPeerThatSays(bytes);
    EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE")) << bytes;
  }
}

TEST_F(HttpFailureTest, MalformedAnswers) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const std::string& bytes : {
           std::string("SSH-2.0-OpenSSH_9.2\r\n"),
           std::string("HTTP/1.1 OK\r\n\r\n"),
           std::string("HTTP/4.0 200 OK\r\n\r\n"),
           ok + "Content-Length: abc\r\n\r\n",
           ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
           ok + "no colon at all\r\nContent-Length: 0\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\n11111111111111111111\r\nabc\r\n0\r\n\r\n",
       }) {
    EXPECT_THAT(GetFromPeerThatSays(bytes), FailsWith("UPSTREAM_PROTOCOL")) << bytes;
  }
}

TEST_F(HttpFailureTest, ResetInsideTheBody) {
  Signal read;
  RawServer server([&read](RawConnection& peer) {
    peer.ReadHead();
    peer.Write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n"
        "64\r\nhalf of a chunk");
    read.Await();
    peer.Reset();
  });
  std::string got;
  absl::Status result;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url()});
    std::string chunk;
    while (co_await transfer.Read(&chunk)) {
      got += chunk;
      if (got.size() == 20) read.Raise();
    }
    result = transfer.result();
  });
  EXPECT_EQ(got, "wholehalf of a chunk");
  EXPECT_THAT(result, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(result, HasMetadata("phase", "answer"));
  EXPECT_THAT(result, SaysInMessage("inside its answer"));
}

// What came before the cut is handed over, and then the failure is.
TEST_F(HttpFailureTest, BytesBeforeTheEndAreDelivered) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + std::string(70000, 'b'));
  });
  size_t got = 0;
  absl::Status result;
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url(), .chunk_bytes = 10000, .max_chunks = 2});
    std::string chunk;
    while (co_await transfer.Read(&chunk)) {
      got += chunk.size();
      co_await loop_.Yield();
    }
    result = transfer.result();
  });
  EXPECT_EQ(got, 70000u);
  EXPECT_THAT(result, FailsWith("UPSTREAM_UNAVAILABLE"));
}

TEST_F(HttpFailureTest, BodiesLargerThanTheLimit) {
  RawServer server([](RawConnection& peer) {
    while (!peer.ReadHead().empty()) peer.Write(Answer(std::string(1000, 'x')));
  });
  EXPECT_TRUE(Fetch({.url = server.Url()}, 1000).ok());
  const auto large = Fetch({.url = server.Url()}, 999);
  EXPECT_THAT(large, FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(large, SaysInMessage("too large"));
}

// Also when the body had arrived before anybody asked for it.
TEST_F(HttpFailureTest, TheLimitCountsWhatCameBeforeReadAll) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write(Answer(std::string(200'000, 'x')));
    peer.AwaitClose();
  });
  for (const size_t limit : {1000, 199'999, 200'000}) {
    const auto body = RunTask(loop_, [&]() -> Task<absl::StatusOr<std::string>> {
      Transfer transfer(client_, {.url = server.Url(), .chunk_bytes = 1000, .max_chunks = 3});
      (void)co_await transfer.Head();
      (void)co_await loop_.Sleep(absl::Milliseconds(10));
      co_return co_await transfer.ReadAll(limit);
    });
    if (limit == 200'000) {
      ASSERT_TRUE(body.ok()) << body.status();
      EXPECT_EQ(body->size(), 200'000u);
    } else {
      EXPECT_THAT(body, FailsWith("UPSTREAM_PROTOCOL"));
    }
  }
}

TEST_F(HttpFailureTest, AnEndlessHeadIsCut) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\n");
    while (peer.Write("X-Pad: " + std::string(1000, 'p') + "\r\n")) continue;
  });
  const auto response = Get(server.Url());
  EXPECT_THAT(response, FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(response, SaysInMessage("head that is too large"));
}

// A failure after the head does not take the head away.
TEST_F(HttpFailureTest, TheHeadSurvivesABrokenBody) {
  RawServer server([](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 418 Teapot\r\nContent-Length: 10\r\n\r\nabc");
  });
  RunTask(loop_, [&]() -> Task<void> {
    Transfer transfer(client_, {.url = server.Url()});
    const auto body = co_await transfer.ReadAll(100);
    EXPECT_THAT(body, FailsWith("UPSTREAM_UNAVAILABLE"));
    const auto head = co_await transfer.Head();
    EXPECT_TRUE(head.ok());
    EXPECT_EQ(head->status, 418);
  });
}

// ---- Names and addresses

// execd listens on one family only; "localhost" has two addresses.
TEST_F(HttpFailureTest, LocalhostWithOneFamilyIsReachedAtOnce) {
  std::vector<RawServer::Family> families = {RawServer::Family::kIpv4};
  if (HasIpv6Loopback()) families.push_back(RawServer::Family::kIpv6);
  for (const RawServer::Family family : families) {
    RawServer server(
        [](RawConnection& peer) {
          peer.ReadHead();
          peer.Write(Answer("here"));
        },
        family);
    const absl::Duration before = loop_.Now();
    const auto response = Get("http://localhost:" + std::to_string(server.port()) + "/");
    EXPECT_LT(loop_.Now() - before, absl::Milliseconds(300));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "here");
  }
}

// ---- TLS

TEST_F(HttpFailureTest, TlsNeedsTrust) {
  const TestCertificate certificate;
  RawServer server(certificate, [](RawConnection& peer) {
    if (peer.ReadHead().empty()) return;
    peer.Write(Answer("secure"));
  });
  const auto stranger = Get(server.Url());
  EXPECT_THAT(stranger, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(stranger, HasMetadata("phase", "connect"));
  EXPECT_THAT(stranger, SaysInMessage("certificate that is not trusted"));

  HttpClient trusting(loop_, {.ca_bundle = certificate.pem()});
  const auto response =
      RunTask(loop_, [&] { return bridge::Fetch(trusting, {.url = server.Url()}, 100); });
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "secure");

  const std::string path = ::testing::TempDir() + "/ca.pem";
  FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(certificate.pem().c_str(), file);
  std::fclose(file);
  HttpClient by_file(loop_, {.ca_file = path});
  EXPECT_TRUE(
      RunTask(loop_, [&] { return bridge::Fetch(by_file, {.url = server.Url()}, 100); }).ok());
  HttpClient no_file(loop_, {.ca_file = "/nonexistent/ca.pem"});
  EXPECT_THAT(RunTask(loop_, [&] { return bridge::Fetch(no_file, {.url = server.Url()}, 100); }),
              FailsWith("UPSTREAM_UNAVAILABLE"));
}

// Trusted, and yet not for this server or not today.
TEST_F(HttpFailureTest, TlsLooksAtNameAndDate) {
  for (const TestCertificate::Options& options :
       {TestCertificate::Options{.names = "DNS:elsewhere.example"},
        TestCertificate::Options{.expires_in_seconds = -60}}) {
    const TestCertificate certificate(options);
    bool asked = false;
    RawServer server(certificate, [&](RawConnection& peer) { asked = !peer.ReadHead().empty(); });
    HttpClient trusting(loop_, {.ca_bundle = certificate.pem()});
    const auto response =
        RunTask(loop_, [&] { return bridge::Fetch(trusting, {.url = server.Url()}, 100); });
    EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
    EXPECT_THAT(response, HasMetadata("phase", "connect"));
    EXPECT_THAT(response, SaysInMessage("certificate that is not trusted"));
    server.AwaitScripts();
    EXPECT_FALSE(asked) << "nothing was sent, in the clear or otherwise";
  }
}

TEST_F(HttpFailureTest, PlainAndTlsDoNotMix) {
  const TestCertificate certificate;
  RawServer tls(certificate, [](RawConnection&) {});
  RawServer plain([](RawConnection& peer) { peer.Write("HTTP/1.1 400 no TLS here\r\n\r\n"); });
  EXPECT_FALSE(Get("http://127.0.0.1:" + std::to_string(tls.port()) + "/").ok());
  const auto response = Get("https://127.0.0.1:" + std::to_string(plain.port()) + "/");
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(response, SaysInMessage("TLS"));
}

TEST_F(HttpFailureTest, ATlsStreamThatIsCutIsNotComplete) {
  const TestCertificate certificate;
  HttpClient trusting(loop_, {.ca_bundle = certificate.pem()});
  RawServer server(certificate, [](RawConnection& peer) {
    peer.ReadHead();
    peer.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\npart of\r\n");
    peer.Close();
  });
  const auto response =
      RunTask(loop_, [&] { return bridge::Fetch(trusting, {.url = server.Url()}, 100); });
  EXPECT_THAT(response, FailsWith("UPSTREAM_UNAVAILABLE"));
}

}  // namespace
}  // namespace bridge
