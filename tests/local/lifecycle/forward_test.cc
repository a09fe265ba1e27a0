// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "bridge/local/http/client.h"
#include "bridge/local/http/server.h"

namespace bridge::local::lifecycle {
namespace {

using http::Exchange;

// A front that forwards everything to a backend whose handler each test gives.
class ForwardTest : public ::testing::Test {
 protected:
  void Serve(http::Handler backend) {
    backend_ = *http::Server::Start({}, std::move(backend));
    plan_.host = "127.0.0.1";
    plan_.port = backend_->port();
    plan_.head = [](const http::Parser::Head& head) {
      http::Response response{head.status, {}, ""};
      for (const auto& [name, value] : head.headers) {
        if (!IsHopByHop(name)) response.headers.Add(name, value);
      }
      return response;
    };
    http::ServerOptions options;
    options.date_header = false;
    front_ = *http::Server::Start(options, [this](Exchange& x) {
      if (on_request_) on_request_();
      ForwardPlan plan = plan_;
      plan.target = x.request().target;
      for (const auto& [name, value] : x.request().headers) {
        if (!IsHopByHop(name)) plan.headers.Add(name, value);
      }
      result_ = ForwardHttp(x, plan);
      if (result_ != ForwardResult::kDone) (void)x.Respond({502, {}, ""});
    });
  }

  http::Response Get(const std::string& target = "/", absl::Duration timeout = absl::Seconds(10)) {
    const auto response = http::Fetch("127.0.0.1", front_->port(), "GET", target, {}, "", timeout);
    return response.ok() ? *response
                         : http::Response{0, {}, std::string(response.status().message())};
  }

  ForwardPlan plan_;
  std::function<void()> on_request_;  // on the front's thread, before it forwards
  std::atomic<ForwardResult> result_{ForwardResult::kDone};
  std::unique_ptr<http::Server> backend_;
  std::unique_ptr<http::Server> front_;
};

TEST_F(ForwardTest, ASignalIsNotTakenForAClientThatIsGone) {
  signal(SIGUSR2, [](int) {});
  std::promise<void> answer;
  std::promise<pthread_t> waiting;
  plan_.idle_timeout = absl::InfiniteDuration();
  Serve([&](Exchange& x) {
    answer.get_future().wait();
    (void)x.Respond({200, {}, "late"});
  });
  on_request_ = [&] { waiting.set_value(pthread_self()); };
  std::future<http::Response> response = std::async(std::launch::async, [&] { return Get(); });
  const pthread_t thread = waiting.get_future().get();
  // Some of so many find it waiting.
  for (int i = 0; i < 2000; ++i) pthread_kill(thread, SIGUSR2);
  answer.set_value();
  EXPECT_EQ(response.get().body, "late");
  signal(SIGUSR2, SIG_DFL);
}

TEST_F(ForwardTest, PassesBodiesInBothDirections) {
  Serve([](Exchange& x) { (void)x.Respond({201, {{"A", "b"}}, x.ReadAll().value_or("?")}); });
  const std::string body(3 << 20, 'x');
  const auto response = http::Fetch("127.0.0.1", front_->port(), "PUT", "/", {}, body);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->headers.Get("a"), "b");
  EXPECT_EQ(response->body, body);
}

TEST_F(ForwardTest, PassesChunkedRequests) {
  Serve([](Exchange& x) { (void)x.Respond({200, {}, x.ReadAll().value_or("?")}); });
  const auto fd = http::ConnectTcp("127.0.0.1", front_->port(), absl::Seconds(5));
  http::Socket socket(*fd);
  ASSERT_TRUE(socket
                  .Write("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
                  .ok());
  std::string got;
  std::array<char, 1000> bytes;
  while (got.find("abcde") == std::string::npos) {
    const auto n = socket.Read(bytes.data(), bytes.size(), absl::Seconds(5));
    ASSERT_TRUE(n.ok() && *n > 0) << got;
    got.append(bytes.data(), *n);
  }
}

TEST_F(ForwardTest, StreamsAsItComes) {
  std::atomic<bool> seen{false};
  Serve([&seen](Exchange& x) {
    (void)x.Start({200, {}, ""});
    (void)x.Write("first");
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!seen && absl::Now() < deadline) std::this_thread::yield();
    (void)x.Write("second");
    (void)x.Finish();
  });
  auto client = http::ClientExchange::Connect("127.0.0.1", front_->port(), absl::Seconds(5));
  ASSERT_TRUE((*client)->SendHead("GET", "/", {}).ok());
  ASSERT_TRUE((*client)->ReadHead(absl::Seconds(5)).ok());
  std::array<char, 100> bytes;
  const auto n = (*client)->ReadBody(bytes.data(), bytes.size(), absl::Seconds(5));
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(std::string(bytes.data(), *n), "first");
  seen = true;
  const auto rest = (*client)->ReadBody(bytes.data(), bytes.size(), absl::Seconds(10));
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(std::string(bytes.data(), *rest), "second");
}

TEST_F(ForwardTest, TellsTheBackendThatTheClientHasGone) {
  std::atomic<bool> noticed{false};
  Serve([&noticed](Exchange& x) {
    (void)x.Start({200, {}, ""});
    (void)x.Write("open");
    noticed = x.socket().WaitPeerClosed(absl::Seconds(10));
  });
  {
    auto client = http::ClientExchange::Connect("127.0.0.1", front_->port(), absl::Seconds(5));
    ASSERT_TRUE((*client)->SendHead("GET", "/", {}).ok());
    ASSERT_TRUE((*client)->ReadHead(absl::Seconds(5)).ok());
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (!noticed && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(noticed);
}

TEST_F(ForwardTest, FailuresBeforeAnAnswer) {
  Serve([](Exchange& x) {
    if (x.request().path == "/reset") return x.Reset();
    if (x.request().path == "/garbage") {
      std::string pending;
      (void)x.Hijack(&pending).Write("this is not HTTP\r\n\r\n");
      return;
    }
    x.Sleep(absl::InfiniteDuration());
  });
  EXPECT_EQ(Get("/reset").status, 502);
  EXPECT_EQ(result_, ForwardResult::kBrokenResponse);
  EXPECT_EQ(Get("/garbage").status, 502);
  EXPECT_EQ(result_, ForwardResult::kBrokenResponse);
  plan_.idle_timeout = absl::Milliseconds(30);
  EXPECT_EQ(Get("/silence").status, 502);
  EXPECT_EQ(result_, ForwardResult::kTimeout);
  backend_->Stop();
  EXPECT_EQ(Get().status, 502);
  EXPECT_EQ(result_, ForwardResult::kNoConnection);
}

TEST_F(ForwardTest, AnswerThatBreaksOffIsBrokenOrPatchedUp) {
  Serve([](Exchange& x) {
    (void)x.Start({200, {}, ""});
    (void)x.Write("half");
    x.socket().Shutdown();
  });
  EXPECT_EQ(Get().status, 0) << "no proper end";
  plan_.end_broken_answers = true;
  EXPECT_EQ(Get().body, "half");
}

TEST_F(ForwardTest, KeepsALengthAndAHeadOnlyAnswer) {
  Serve([](Exchange& x) { (void)x.Respond({200, {}, "12345"}); });
  const auto head = http::Fetch("127.0.0.1", front_->port(), "HEAD", "/");
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->headers.Get("content-length"), "5");
  EXPECT_EQ(Get().headers.Get("transfer-encoding"), std::nullopt);
}

TEST(HopByHop, Names) {
  EXPECT_TRUE(IsHopByHop("Connection"));
  EXPECT_TRUE(IsHopByHop("transfer-encoding"));
  EXPECT_FALSE(IsHopByHop("content-length"));
}

}  // namespace
}  // namespace bridge::local::lifecycle
