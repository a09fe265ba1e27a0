// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/exec_pump.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/service/call_fixture.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr StreamId kOut = StreamId::kStdout;
constexpr StreamId kErr = StreamId::kStderr;

TEST(OutputLimit, CutsEachStreamAtTheLimitAndSaysSo) {
  OutputLimit limit(5);
  EXPECT_EQ(limit.Take(kOut, 3), 3);
  EXPECT_FALSE(limit.full(kOut));
  EXPECT_EQ(limit.Take(kOut, 3), 2);
  EXPECT_TRUE(limit.full(kOut));
  EXPECT_TRUE(limit.truncated(kOut, 5));
  EXPECT_EQ(limit.Take(kOut, 3), 0);
  EXPECT_EQ(limit.Take(kErr, 5), 5);
  EXPECT_TRUE(limit.full(kErr));
  EXPECT_FALSE(limit.truncated(kErr, 5)) << "exactly the limit is not too much";
  EXPECT_TRUE(limit.truncated(kErr, 6)) << "what was skipped counts, too";
}

TEST(OutputLimit, ZeroTakesNothing) {
  OutputLimit limit(0);
  EXPECT_TRUE(limit.full(kOut));
  EXPECT_FALSE(limit.truncated(kOut, 0));
  EXPECT_EQ(limit.Take(kOut, 1), 0);
  EXPECT_TRUE(limit.truncated(kOut, 1));
}

TEST(OutputLimit, NoneNeverCuts) {
  OutputLimit limit(OutputLimit::kNone);
  EXPECT_EQ(limit.Take(kOut, int64_t{1} << 62), int64_t{1} << 62);
  EXPECT_FALSE(limit.truncated(kOut, int64_t{1} << 62));
}

// Prints "abcd", then as much again that nobody wants any more.
class TwoHalves final : public Exec {
 public:
  Task<absl::Status> Next(ExecBatch* batch, absl::Duration) override {
    *batch = {};
    switch (step_++) {
      case 0:
        batch->outputs.push_back({kOut, "abcd", 0});
        break;
      case 1:
        EXPECT_TRUE(skipped_);
        batch->exited = ExitCode{0};
        break;
      default:
        batch->drained = true;
        batch->stdout_bytes = 8;
        batch->still_open = true;
    }
    co_return absl::OkStatus();
  }
  void Skip(StreamId) override { skipped_ = true; }

 private:
  int step_ = 0;
  bool skipped_ = false;
};

// The first piece filled the limit exactly, and the rest was missing without a word.
TEST(ExecPump, WhatWasSkippedIsTruncated) {
  testing::CallServer server(
      {.execute = [](testing::ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
        TwoHalves exec;
        ExecPump pump(call, exec, /*max_output_bytes=*/4, absl::Seconds(1));
        co_return co_await pump.Run();
      }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto stream = stub->Execute(&context, {});
  std::string out;
  v1::ExecEvent event;
  v1::ExecEvent::Drained drained;
  while (stream->Read(&event)) {
    for (const auto& output : event.output_batch().outputs()) out += output.data();
    if (event.has_drained()) drained = event.drained();
    EXPECT_FALSE(event.exited().has_ran_for()) << "it was not told";
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(out, "abcd");
  EXPECT_EQ(drained.stdout_bytes(), 8);
  EXPECT_TRUE(drained.stdout_truncated());
  EXPECT_FALSE(drained.stderr_truncated());
  EXPECT_TRUE(drained.still_open());
}

// Silent for a while; a heartbeat of its daemon ends each wait a little early.
class HeartbeatsInSilence final : public Exec {
 public:
  static constexpr int kHeartbeats = 3;
  HeartbeatsInSilence(EventLoop& loop, absl::Duration heartbeat)
      : loop_(loop), heartbeat_(heartbeat) {}
  Task<absl::Status> Next(ExecBatch* batch, absl::Duration) override {
    *batch = {};
    (void)co_await loop_.Sleep(heartbeat_);
    batch->drained = ++step_ > kHeartbeats;
    co_return absl::OkStatus();
  }
  void Skip(StreamId) override {}

 private:
  EventLoop& loop_;
  const absl::Duration heartbeat_;
  int step_ = 0;
};

// A client heard nothing for twice as long as it had asked for.
TEST(ExecPump, AHeartbeatThatComesALittleEarlyIsAKeepalive) {
  testing::CallServer server(
      {.execute = [](testing::ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
        HeartbeatsInSilence exec(call.loop(), absl::Milliseconds(190));
        ExecPump pump(call, exec, OutputLimit::kNone, absl::Milliseconds(200));
        co_return co_await pump.Run();
      }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto stream = stub->Execute(&context, {});
  int keepalives = 0;
  v1::ExecEvent event;
  while (stream->Read(&event)) keepalives += event.has_keepalive() ? 1 : 0;
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(keepalives, HeartbeatsInSilence::kHeartbeats);
}

}  // namespace
}  // namespace bridge
