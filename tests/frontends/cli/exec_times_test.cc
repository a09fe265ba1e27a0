// SPDX-License-Identifier: Apache-2.0
//
// How long a session waits for whom: the bridge that says nothing, the reader that takes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <optional>
#include <string>

#include "frontends/cli/exec_session.h"
#include "tests/frontends/cli/exec_session_fixture.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;

// The session itself, with times of its own.
class ExecTimesTest : public ExecSessionTest {
 protected:
  int RunSession(ExecTimes times) {
    Streams streams(-1, pipe_[1], err_);
    Connection connection(*Settings::Read(fake_.address(), no_environment_));
    Context context{streams, sbx_.interrupts(), connection, no_environment_};
    pb::ExecuteRequest request;
    request.set_sandbox_id("sb-1");
    return ExecSession(context, request, times).Run();
  }

  const EnvironmentLookup no_environment_ = [](const std::string&) { return std::nullopt; };
  const int err_ = FileWith("");
};

TEST_F(ExecTimesTest, ABridgeThatFallsSilentIsGivenUp) {
  RunsUntilKilled(/*answers_signals=*/true);
  EXPECT_EQ(RunSession({.silence = std::chrono::milliseconds(50)}), 125);
  EXPECT_THAT(ContentOf(err_), HasSubstr("BRIDGE_SILENT"));
  EXPECT_TRUE(WasCancelled());
}

TEST_F(ExecTimesTest, KeepalivesAreNoSilence) {
  fake_.on_execute = [](grpc::ServerContext*, const pb::ExecuteRequest&,
                        FakeBridge::ExecWriter* writer) {
    pb::ExecEvent keepalive;
    keepalive.mutable_keepalive();
    writer->Write(Started());
    for (int i = 0; i < 20; ++i) {
      std::promise<void>().get_future().wait_for(std::chrono::milliseconds(25));
      writer->Write(keepalive);
    }
    for (const auto& event : {Exited(0), Drained()}) writer->Write(event);
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunSession({.silence = std::chrono::milliseconds(400)}), 0);
}

TEST_F(ExecTimesTest, AFullPipeDoesNotHoldUpCtrlC) {
  RunsUntilKilled(/*answers_signals=*/true);
  fake_.on_execute = [this](grpc::ServerContext*, const pb::ExecuteRequest&,
                            FakeBridge::ExecWriter* writer) {
    writer->Write(Started("ex-7"));
    while (writer->Write(Output(pb::OUTPUT_STREAM_STDOUT, std::string(100'000, 'y')))) {
    }
    cancelled_.set_value();
    return grpc::Status::CANCELLED;
  };
  auto ran = std::async(std::launch::async, [&] {
    return RunSession(
        {.silence = std::chrono::hours(1), .farewell = std::chrono::milliseconds(50)});
  });
  AwaitOutput("y");
  sbx_.interrupts().Deliver(SIGINT);
  EXPECT_EQ(ran.get(), 130);
  EXPECT_EQ(signal_request_.exec_id(), "ex-7");
  EXPECT_TRUE(WasCancelled());
}

}  // namespace
}  // namespace bridge::cli
