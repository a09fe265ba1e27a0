// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/faults/fault_injector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "bridge/local/faults/recorder.h"
#include "bridge/local/http/client.h"
#include "bridge/local/http/server.h"
#include "bridge/local/lifecycle/notes.h"

namespace bridge::local::faults {
namespace {

using http::Exchange;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class FaultsTest : public ::testing::Test {
 protected:
  // "/events" is a stream of three events, "/ws" a WebSocket that says three messages, "/notes"
  // what a handler is told; anything else is its path.
  void SetUp() override {
    http::ServerOptions options;
    options.date_header = false;
    options.hooks = {recorder_.Hooks(LIFECYCLE), injector_.Hooks(LIFECYCLE)};
    auto server = http::Server::Start(options, [](Exchange& x) {
      const std::string& path = x.request().path;
      if (path == "/events") {
        (void)x.Start({200, {{"Content-Type", "text/event-stream"}}, ""});
        // Events do not keep to the borders of writes.
        for (const char* piece : {"{\"e\":1}\n\n{\"e\"", ":2}\n", "\n", "{\"e\":3}\n\n"}) {
          if (!x.Write(piece).ok()) return;
        }
        (void)x.Finish();
      } else if (path == "/ws") {
        auto ws = x.AcceptWebSocket();
        for (const char* text : {"one", "two", "three"}) {
          if (!(*ws)->WriteText(text).ok()) return;
        }
        (void)(*ws)->Close(1000);
        (void)(*ws)->Read(absl::Seconds(5));
      } else if (path == "/notes") {
        (void)x.Respond({200,
                         {},
                         x.note(lifecycle::kNoteHideNew) + "," + x.note(lifecycle::kNotePending) +
                             "," + x.note(lifecycle::kNoteKeepOnDelete)});
      } else {
        (void)x.ReadAll();
        (void)x.Respond({200, {{"X-Own", "1"}}, path});
      }
    });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  void Plan(const std::string& text) {
    const absl::Status set = injector_.SetPlanText(text);
    ASSERT_TRUE(set.ok()) << set;
  }

  // All bytes that a GET gets, and how the connection ended.
  std::string Raw(const std::string& target, absl::Duration timeout = absl::Seconds(10)) {
    const auto fd = http::ConnectTcp("127.0.0.1", server_->port(), absl::Seconds(5));
    http::Socket socket(*fd);
    (void)socket.Write("GET " + target + " HTTP/1.1\r\nConnection: close\r\n\r\n");
    std::string got;
    std::array<char, 4096> piece;
    while (true) {
      const auto n = socket.Read(piece.data(), piece.size(), timeout);
      if (!n.ok()) return got + "<" + std::string(n.status().message()) + ">";
      if (*n == 0) return got + "<end>";
      got.append(piece.data(), *n);
    }
  }

  Recorder recorder_{10};
  FaultInjector injector_;
  std::unique_ptr<http::Server> server_;
};

TEST_F(FaultsTest, WithoutAPlanNothingHappens) {
  EXPECT_EQ(Raw("/x"),
            "HTTP/1.1 200 OK\r\nX-Own: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n/x<end>");
}

TEST_F(FaultsTest, AnswersInstead) {
  Plan(R"(rule { route: "/x" action { answer {
            status: 503 header { name: "Retry-After" value: "7" } body: "{\"code\":\"BUSY\"}" } } })");
  EXPECT_THAT(Raw("/x"), AllOf(StartsWith("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n"),
                               HasSubstr("{\"code\":\"BUSY\"}<end>")));
  EXPECT_THAT(Raw("/y"), StartsWith("HTTP/1.1 200"));
}

TEST_F(FaultsTest, CountsByRule) {
  Plan(
      R"(rule { method: "GET" route: "/a/{b}" first: 2 times: 2 action { answer { status: 500 } } })");
  const auto status = [this] { return Raw("/a/b").substr(9, 3); };
  EXPECT_EQ(status(), "200");
  EXPECT_EQ(status(), "500");
  EXPECT_EQ(status(), "500");
  EXPECT_EQ(status(), "200");
  EXPECT_EQ(injector_.fired(0), 2);
  EXPECT_EQ(injector_.fired(9), 0);
  Plan(R"(rule { query_contains: "x=1" half: EXECD action { answer { status: 500 } } })");
  EXPECT_THAT(Raw("/a?x=1"), StartsWith("HTTP/1.1 200")) << "the other half";
}

TEST_F(FaultsTest, SilenceCloseAndReset) {
  Plan(R"(rule { route: "/silent" action { never_answer: true } }
          rule { route: "/close" action { close: true } }
          rule { route: "/reset" action { reset: true } })");
  EXPECT_EQ(Raw("/silent", absl::Milliseconds(50)), "<read timed out>");
  EXPECT_EQ(Raw("/close"), "<end>");
  EXPECT_EQ(Raw("/reset"), "<read: Connection reset by peer>");
}

TEST_F(FaultsTest, DelaysBeforeTheHandler) {
  Plan(R"(rule { action { delay_seconds: 0.05 } })");
  const absl::Time start = absl::Now();
  EXPECT_THAT(Raw("/x"), HasSubstr("200 OK"));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(50));
}

TEST_F(FaultsTest, CutsTheBody) {
  Plan(R"(rule { route: "/events" times: 1 action { close_after_bytes: 12 } }
          rule { route: "/events" first: 2 times: 1 action { reset_after_bytes: 12 } }
          rule { route: "/events" first: 3 times: 1 action { hang_after_bytes: 12 } }
          rule { route: "/abcdef" action { close_after_bytes: 0 } })");
  const std::string cut = "c\r\n{\"e\":1}\n\n{\"e\r\n";
  EXPECT_THAT(Raw("/events"), HasSubstr("\r\n\r\n" + cut + "<end>"));
  EXPECT_THAT(Raw("/events"), HasSubstr("reset by peer"));
  EXPECT_THAT(Raw("/events", absl::Milliseconds(50)), HasSubstr(cut + "<read timed out>"));
  EXPECT_THAT(Raw("/abcdef"), AllOf(HasSubstr("Content-Length: 7"), HasSubstr("\r\n\r\n<end>")));
}

TEST_F(FaultsTest, LiesAboutTheLengthAndTheDate) {
  Plan(R"(rule { action { content_length: 99 date_skew_seconds: -3600
                          set_header { name: "X-Own" value: "2" } remove_header: "Server" } })");
  const std::string got = Raw("/x");
  EXPECT_THAT(got, AllOf(HasSubstr("content-length: 99\r\n"), HasSubstr("X-Own: 2\r\n"),
                         HasSubstr("\r\n\r\n/x<end>")));
  const long long skewed = std::time(nullptr) - 3600;
  EXPECT_TRUE(got.find(http::HttpDate(skewed)) != std::string::npos ||
              got.find(http::HttpDate(skewed - 1)) != std::string::npos)
      << got;
}

TEST_F(FaultsTest, WritesByteByByteButNotTheNextExchange) {
  Plan(R"(rule { route: "/abc" action { write_bytes: 1 } })");
  EXPECT_THAT(Raw("/abc"), HasSubstr("\r\n\r\n/abc<end>"));
}

TEST_F(FaultsTest, DropsAndInsertsEvents) {
  Plan(R"(rule { route: "/events" action {
            drop_event: "\"e\":2"
            insert { after: 0 text: "{\"e\":0}\n\n" }
            insert { after: 2 text: "{\"extra\":1}\n\n" } } })");
  const auto response = http::Fetch("127.0.0.1", server_->port(), "GET", "/events");
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->body, "{\"e\":0}\n\n{\"e\":1}\n\n{\"e\":3}\n\n{\"extra\":1}\n\n");
}

TEST_F(FaultsTest, CutsAfterEvents) {
  Plan(R"(rule { route: "/events" action { close_after_events: 2 } })");
  const std::string got = Raw("/events");
  EXPECT_THAT(got, AllOf(HasSubstr("{\"e\":2}\n\n"), Not(HasSubstr("\"e\":3")),
                         Not(HasSubstr("0\r\n\r\n")), HasSubstr("<end>")));
}

std::vector<std::string> Messages(int port, uint16_t* code) {
  auto client = http::ClientExchange::Connect("127.0.0.1", port, absl::Seconds(5));
  (void)(*client)->SendHead("GET", "/ws",
                            {{"Upgrade", "websocket"},
                             {"Connection", "Upgrade"},
                             {"Sec-WebSocket-Version", "13"},
                             {"Sec-WebSocket-Key", http::WebSocketKey()}});
  EXPECT_TRUE((*client)->ReadHead(absl::Seconds(5)).ok());
  const auto ws = (*client)->TakeWebSocket({});
  std::vector<std::string> messages;
  while (true) {
    const auto message = ws->Read(absl::Seconds(10));
    if (!message.ok()) break;
    messages.push_back(message->data);
  }
  *code = ws->close_code();
  return messages;
}

TEST_F(FaultsTest, ActsOnWebSocketMessages) {
  uint16_t code = 0;
  EXPECT_THAT(Messages(server_->port(), &code), ElementsAre("one", "two", "three"));
  EXPECT_EQ(code, 1000);
  Plan(R"(rule { route: "/ws" times: 1 action { close_after_events: 2 } }
          rule { route: "/ws" first: 2 action { drop_event: "two" } })");
  EXPECT_THAT(Messages(server_->port(), &code), ElementsAre("one", "two"));
  EXPECT_EQ(code, 1006) << "the connection ended, without a close frame";
  EXPECT_THAT(Messages(server_->port(), &code), ElementsAre("one", "three"));
}

TEST_F(FaultsTest, TellsTheLifecycleHandlers) {
  EXPECT_THAT(Raw("/notes"), HasSubstr("\r\n\r\n,,<end>"));
  Plan(R"(rule { action { hide_new_seconds: 2 pending_seconds: 3 keep_on_delete: true } })");
  EXPECT_THAT(Raw("/notes"), HasSubstr("\r\n\r\n2.000000,3.000000,1<end>"));
}

TEST_F(FaultsTest, SeveralRulesActTogether) {
  Plan(R"(rule { action { set_header { name: "A" value: "1" } } }
          rule { route: "/x" action { set_header { name: "B" value: "2" } } })");
  EXPECT_THAT(Raw("/x"), AllOf(HasSubstr("A: 1\r\n"), HasSubstr("B: 2\r\n")));
}

TEST_F(FaultsTest, UnreadablePlanChangesNothing) {
  Plan(R"(rule { action { answer { status: 500 } } })");
  EXPECT_TRUE(absl::IsInvalidArgument(injector_.SetPlanText("rule {")));
  EXPECT_THAT(Raw("/x"), StartsWith("HTTP/1.1 500"));
  Plan("");
  EXPECT_THAT(Raw("/x"), StartsWith("HTTP/1.1 200"));
}

TEST_F(FaultsTest, RecorderKeepsWhatWasReceived) {
  const auto response = http::Fetch("127.0.0.1", server_->port(), "POST", "/a%20b/c?d=e",
                                    {{"X-One", "1"}}, "0123456789abcdef");
  ASSERT_TRUE(response.ok());
  ASSERT_TRUE(recorder_.WaitFor("POST", "/{x}/c", 1, absl::Seconds(5)));
  const auto requests = recorder_.Matching("POST", "/{x}/c");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].target, "/a%20b/c?d=e");
  EXPECT_EQ(requests[0].path, "/a b/c");
  EXPECT_EQ(requests[0].headers.Get("x-one"), "1");
  EXPECT_EQ(requests[0].body, "0123456789") << "bounded";
  EXPECT_EQ(requests[0].body_size, 16u);
  EXPECT_EQ(requests[0].status, 200);
  EXPECT_THAT(requests[0].peer, StartsWith("127.0.0.1:"));
  EXPECT_TRUE(recorder_.Matching("GET", "").empty());
  EXPECT_FALSE(recorder_.WaitFor("GET", "", 1, absl::Milliseconds(10)));
  recorder_.Clear();
  EXPECT_TRUE(recorder_.requests().empty());
}

}  // namespace
}  // namespace bridge::local::faults
