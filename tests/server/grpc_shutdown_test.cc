// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/grpc_shutdown.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/service/status.h"
#include "tests/service/call_fixture.h"

namespace bridge::testing {
namespace {

using R = ErrorReason;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kStreams = 200;

// A stream that counts the messages it got and knows how it ended.
class Client final : public grpc::ClientReadReactor<v1::ExecEvent> {
 public:
  Client(v1::ExecService::Stub& stub, std::atomic<int>& ended) : ended_(ended) {
    stub.async()->Execute(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  int events() const { return events_; }
  const absl::Status& status() const { return status_; }  // once ended

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++events_;
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    status_ = FromGrpcStatus(status);
    ++ended_;
  }

  std::atomic<int>& ended_;
  grpc::ClientContext context_;
  v1::ExecuteRequest request_;
  v1::ExecEvent event_;
  std::atomic<int> events_{0};
  absl::Status status_;
};

class GrpcShutdown : public ::testing::Test {
 protected:
  // Streams that run until `go_`, then send one last message.
  Handlers UntilGo() {
    Handlers handlers;
    handlers.execute = [this](ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
      ++running_;
      v1::ExecEvent event;
      event.mutable_keepalive();
      bool alive = co_await call.Write(event);
      while (alive && !go_) alive = co_await call.loop().Sleep(absl::Milliseconds(2));
      event.mutable_drained();
      if (alive) alive = co_await call.Write(event);
      co_return alive ? absl::OkStatus() : call.Interrupted();
    };
    return handlers;
  }

  std::vector<std::unique_ptr<Client>> Open(CallServer& server) {
    stub_ = v1::ExecService::NewStub(server.NewChannel());
    std::vector<std::unique_ptr<Client>> clients;
    clients.reserve(kStreams);
    for (int i = 0; i < kStreams; ++i) clients.push_back(std::make_unique<Client>(*stub_, ended_));
    EXPECT_TRUE(Eventually([this] { return running_ == kStreams; }));
    return clients;
  }

  std::unique_ptr<v1::ExecService::Stub> stub_;
  std::atomic<int> running_{0}, ended_{0};
  std::atomic<bool> go_{false};
};

TEST_F(GrpcShutdown, StreamsThatEndWithinTheGraceEndWell) {
  CallServer server(UntilGo());
  auto clients = Open(server);
  std::atomic<bool> over{false};
  std::thread shutdown([&] {
    ShutdownCalls(server.grpc(), server.host(), absl::Hours(1));
    over = true;
  });
  ASSERT_TRUE(Eventually([&] { return server.host().draining(); }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(over);
  EXPECT_EQ(ended_, 0);
  go_ = true;
  const auto start = steady_clock::now();
  shutdown.join();
  EXPECT_LT(steady_clock::now() - start, milliseconds(5000));  // not an hour
  EXPECT_EQ(server.host().live(), 0);
  ASSERT_TRUE(Eventually([&] { return ended_ == kStreams; }));
  for (const auto& client : clients) {
    EXPECT_TRUE(client->status().ok()) << client->status();
    EXPECT_EQ(client->events(), 2);  // the last message too
  }
}

TEST_F(GrpcShutdown, StreamsThatOutlastTheGraceEndWithTheReason) {
  CallServer server(UntilGo());
  auto clients = Open(server);
  ShutdownCalls(server.grpc(), server.host(), absl::Milliseconds(100));
  EXPECT_EQ(server.host().live(), 0);
  ASSERT_TRUE(Eventually([&] { return ended_ == kStreams; }));
  for (const auto& client : clients) {
    EXPECT_EQ(ReasonOf(client->status()), R::ERROR_REASON_DRAINING) << client->status();
  }
}

// A handler that takes its time to clean up after it was interrupted is waited for.
TEST_F(GrpcShutdown, CleaningUpAfterTheInterruptionIsWaitedFor) {
  std::atomic<bool> cleaned{false}, started{false};
  Handlers handlers;
  handlers.execute = [&](ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
    started = true;
    Waiter never;
    (void)co_await never.Wait();
    // Sleep() is over at once in a cancelled task; this is not.
    Waiter later;
    Timer timer(call.loop(), [](void* w) { static_cast<Waiter*>(w)->Notify(true); }, &later);
    timer.SetAt(call.loop().Now() + absl::Milliseconds(300));
    (void)co_await later.WaitUncancellable();
    cleaned = true;
    co_return call.Interrupted();
  };
  CallServer server(std::move(handlers));
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  Client client(*stub, ended_);
  ASSERT_TRUE(Eventually([&] { return started.load(); }));
  ShutdownCalls(server.grpc(), server.host(), absl::ZeroDuration());
  EXPECT_TRUE(cleaned);
  EXPECT_EQ(server.host().live(), 0);
  ASSERT_TRUE(Eventually([&] { return ended_ == 1; }));
}

TEST_F(GrpcShutdown, AnIdleServerGoesAtOnce) {
  CallServer server({});
  const auto start = steady_clock::now();
  ShutdownCalls(server.grpc(), server.host(), absl::Hours(1));
  EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
}

}  // namespace
}  // namespace bridge::testing
