// SPDX-License-Identifier: Apache-2.0
//
// tests/frontends/cli/exec_session_fixture.h — `sbx exec` in the background before a fake bridge,
// with signals on command.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/harness.h"

namespace bridge::cli {

inline pb::Outcome Killed(bool confirmed) {
  pb::Outcome outcome;
  outcome.mutable_cancelled()->set_confirmed(confirmed);
  outcome.mutable_cancelled()->mutable_signal()->set_number(SIGKILL);
  outcome.mutable_cancelled()->mutable_signal()->set_name("SIGKILL");
  return outcome;
}

class ExecSessionTest : public ::testing::Test {
 protected:
  ExecSessionTest() { EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0); }
  ~ExecSessionTest() override {
    for (const int fd : pipe_) close(fd);
  }

  // Runs `sbx exec sb-1 -- x` in the background, so that the test can interrupt it.
  std::future<Ran> Start(std::vector<std::string> args = {"exec", "sb-1", "--", "x"}) {
    return std::async(std::launch::async, [this, args] { return sbx_.Run(args); });
  }

  // The same with stdout on a pipe; returns when the command is known to run.
  std::future<Ran> StartAndAwaitOutput() {
    sbx_.set_out(pipe_[1]);
    auto ran = Start();
    AwaitOutput("running\n");
    return ran;
  }

  void AwaitOutput(const std::string& wanted) {
    std::string got(wanted.size(), '\0');
    EXPECT_EQ(read(pipe_[0], got.data(), got.size()), static_cast<ssize_t>(got.size()));
    EXPECT_EQ(got, wanted);
  }

  // An exec that runs until it is signalled (then it ends as killed) or its call is cancelled.
  void RunsUntilKilled(bool answers_signals) {
    fake_.on_execute = [this](grpc::ServerContext* context, const pb::ExecuteRequest&,
                              FakeBridge::ExecWriter* writer) {
      writer->Write(Started("ex-7"));
      writer->Write(Output(pb::OUTPUT_STREAM_STDOUT, "running\n"));
      while (!context->IsCancelled()) {
        if (killed_.wait_for(std::chrono::milliseconds(2)) == std::future_status::ready) {
          writer->Write(Ended(Killed(true)));
          writer->Write(Drained());
          return grpc::Status::OK;
        }
      }
      cancelled_.set_value();
      return grpc::Status::CANCELLED;
    };
    fake_.on_signal = [this, answers_signals](const pb::SignalExecRequest& request,
                                              pb::SignalExecResponse* response) {
      signal_request_ = request;
      if (!answers_signals) {
        return ErrorStatus(pb::ERROR_REASON_UNSUPPORTED_FEATURE, grpc::StatusCode::UNIMPLEMENTED,
                           "cannot");
      }
      response->set_ended(true);
      kill_.set_value();
      return grpc::Status::OK;
    };
  }

  bool WasCancelled() {
    return cancelled_.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

  std::array<int, 2> pipe_ = {-1, -1};
  std::promise<void> kill_;
  std::shared_future<void> killed_ = kill_.get_future().share();
  std::promise<void> cancelled_;
  pb::SignalExecRequest signal_request_;
  FakeBridge fake_;
  Sbx sbx_{fake_.address()};
};

}  // namespace bridge::cli
