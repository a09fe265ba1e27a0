// SPDX-License-Identifier: Apache-2.0
//
// Streams that are cut at random moments. Whatever happens, every handler comes to its end, every
// call is recorded once and no object stays behind. Worth most under the sanitizers.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bridge/net/event_loop.h"
#include "bridge/service/call.h"
#include "tests/service/call_fixture.h"

namespace bridge::testing {
namespace {

constexpr int kStreams = 1500;
constexpr int kRounds = 3;

// Yields 4 KiB again and again, with pauses, until it is cut.
Task<absl::Status> Produce(ExecuteCall& call, std::atomic<int>& running) {
  ++running;
  v1::ExecEvent event;
  auto* output = event.mutable_output_batch()->add_outputs();
  output->mutable_data()->assign(4096, 'x');
  bool alive = true;
  for (int64_t offset = 0; alive; offset += 4096) {
    output->set_offset(offset);
    const bool written =
        co_await call.Write(event, offset % 3 == 0 ? WriteHint::kMore : WriteHint::kFlush);
    if (!written) break;
    alive = co_await call.loop().Sleep(absl::Microseconds(offset % 3000));
  }
  --running;
  co_return call.Interrupted();
}

// Echoes, in two tasks.
Task<absl::Status> Echo(AttachCall& call, std::atomic<int>& running) {
  ++running;
  std::string waiting;
  Waiter wake;
  auto in = [&]() -> Task<void> {
    v1::AttachProcessRequest* message = nullptr;
    while ((message = co_await call.Read()) != nullptr) {
      waiting += message->stdin().data();
      wake.Notify(true);
    }
  };
  auto out = [&]() -> Task<void> {
    v1::ProcessEvent event;
    bool alive = true;
    while (alive) {
      while (alive && waiting.empty()) alive = co_await wake.Wait();
      if (!alive) co_return;
      event.mutable_output()->mutable_data()->swap(waiting);
      waiting.clear();
      alive = co_await call.Write(event);
    }
  };
  co_await RunBoth(in, out);
  --running;
  co_return call.interruption() == Interruption::kNone ? absl::OkStatus() : call.Interrupted();
}

// A client stream that reads what comes, sends now and then, and counts its end.
class ExecuteClient final : public grpc::ClientReadReactor<v1::ExecEvent> {
 public:
  ExecuteClient(v1::ExecService::Stub& stub, std::atomic<int>& ended) : ended_(ended) {
    stub.async()->Execute(&context, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  grpc::ClientContext context;

 private:
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&event_);
  }
  void OnDone(const grpc::Status&) override { ++ended_; }

  std::atomic<int>& ended_;
  v1::ExecuteRequest request_;
  v1::ExecEvent event_;
};

class AttachClient final
    : public grpc::ClientBidiReactor<v1::AttachProcessRequest, v1::ProcessEvent> {
 public:
  AttachClient(v1::ProcessService::Stub& stub, std::atomic<int>& ended) : ended_(ended) {
    request_.mutable_stdin()->set_data(std::string(1000, 'y'));
    stub.async()->AttachProcess(&context, this);
    StartWrite(&request_);
    StartRead(&event_);
    StartCall();
  }
  grpc::ClientContext context;

 private:
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&event_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) StartWrite(&request_);
  }
  void OnDone(const grpc::Status&) override { ++ended_; }

  std::atomic<int>& ended_;
  v1::AttachProcessRequest request_;
  v1::ProcessEvent event_;
};

TEST(CallStorm, StreamsThatAreCutAtRandomMomentsLeaveNothing) {
  std::atomic<int> running{0};
  CallServer server({
      .execute = [&](ExecuteCall& call,
                     const v1::ExecuteRequest&) { return Produce(call, running); },
      .attach = [&](AttachCall& call) { return Echo(call, running); },
  });
  std::minstd_rand random(20261130);
  int made = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    channels.reserve(4);
    for (int i = 0; i < 4; ++i) channels.push_back(server.NewChannel());
    std::vector<std::unique_ptr<v1::ExecService::Stub>> exec;
    std::vector<std::unique_ptr<v1::ProcessService::Stub>> processes;
    exec.reserve(channels.size());
    processes.reserve(channels.size());
    for (const auto& channel : channels) {
      exec.push_back(v1::ExecService::NewStub(channel));
      processes.push_back(v1::ProcessService::NewStub(channel));
    }
    std::atomic<int> ended{0};
    std::vector<std::unique_ptr<ExecuteClient>> readers;
    std::vector<std::unique_ptr<AttachClient>> talkers;
    std::vector<grpc::ClientContext*> contexts;
    for (int i = 0; i < kStreams; ++i) {
      if (i % 3 == 0) {
        talkers.push_back(std::make_unique<AttachClient>(*processes[i % 4], ended));
        contexts.push_back(&talkers.back()->context);
      } else {
        readers.push_back(std::make_unique<ExecuteClient>(*exec[i % 4], ended));
        contexts.push_back(&readers.back()->context);
      }
      // Some die before the server has heard of them, some while they stream.
      if (random() % 4 == 0) contexts[random() % contexts.size()]->TryCancel();
      if (i % 100 == 99) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
    }
    for (grpc::ClientContext* context : contexts) {
      context->TryCancel();
      if (random() % 50 == 0) std::this_thread::yield();
    }
    ASSERT_TRUE(Eventually([&] { return ended == kStreams; })) << ended;
    made += kStreams;
    ASSERT_TRUE(Eventually([&] { return server.host().live() == 0; }))
        << server.host().live() << " calls are left in round " << round << "\n"
        << server.host().DescribeLiveCalls().substr(0, 2000);
    EXPECT_EQ(running, 0);
    EXPECT_EQ(static_cast<int>(server.recorder.ended().size()), server.recorder.started);
    EXPECT_LE(server.recorder.started, made);
  }
  EXPECT_GT(server.recorder.started, kStreams);  // most of them did reach the server
}

// The server goes down under 500 streams that nobody ends.
TEST(CallStorm, AServerThatStopsUnderLoadLeavesNothing) {
  std::atomic<int> running{0};
  CallServer server({.execute = [&](ExecuteCall& call, const v1::ExecuteRequest&) {
    return Produce(call, running);
  }});
  auto channel = server.NewChannel();
  auto stub = v1::ExecService::NewStub(channel);
  std::atomic<int> ended{0};
  std::vector<std::unique_ptr<ExecuteClient>> clients;
  clients.reserve(500);
  for (int i = 0; i < 500; ++i) clients.push_back(std::make_unique<ExecuteClient>(*stub, ended));
  ASSERT_TRUE(Eventually([&] { return running == 500; }));
  server.host().StartDraining(absl::Seconds(1));
  server.host().InterruptAll();
  ASSERT_TRUE(Eventually([&] { return running == 0; }));
  server.Stop();
  EXPECT_TRUE(Eventually([&] { return ended == 500; }));
  for (const auto& call : server.recorder.ended()) {
    EXPECT_EQ(call.reason, ErrorReason::ERROR_REASON_DRAINING);
  }
}

}  // namespace
}  // namespace bridge::testing
