// SPDX-License-Identifier: Apache-2.0
//
// The built sbx on a terminal: Ctrl-C, a closed window, typed input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>

#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/terminal.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";

class TerminalTest : public ::testing::Test {
 protected:
  TerminalTest() {
    fake_.on_execute = [this](grpc::ServerContext* context, const pb::ExecuteRequest& request,
                              FakeBridge::ExecWriter* writer) {
      return Execute(context, request, writer);
    };
    fake_.on_signal = [this](const pb::SignalExecRequest& request, auto*) {
      EXPECT_EQ(request.signal().number(), SIGKILL);
      allowed_.wait();
      kill_.set_value();
      return grpc::Status::OK;
    };
  }

  // Runs until it is killed; what it was given to read comes back as output.
  grpc::Status Execute(grpc::ServerContext* context, const pb::ExecuteRequest& request,
                       FakeBridge::ExecWriter* writer) {
    writer->Write(Started("ex-1"));
    writer->Write(Output(pb::OUTPUT_STREAM_STDOUT, "<" + request.spec().stdin() + ">"));
    if (request.spec().argv().args(0) == "cat") {
      writer->Write(Exited(0));
      writer->Write(Drained());
      return grpc::Status::OK;
    }
    while (!context->IsCancelled()) {
      if (killed_.wait_for(std::chrono::milliseconds(2)) != std::future_status::ready) continue;
      pb::Outcome outcome;
      outcome.mutable_cancelled()->set_confirmed(true);
      outcome.mutable_cancelled()->mutable_signal()->set_number(SIGKILL);
      writer->Write(Ended(outcome));
      writer->Write(Drained());
      return grpc::Status::OK;
    }
    gone_.set_value();
    return grpc::Status::CANCELLED;
  }

  bool ClientIsGone() {
    return gone_.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

  Terminal Start(const std::vector<std::string>& args) {
    return Terminal(SbxBinary(), args, fake_.address());
  }

  void Allow() { allow_.set_value(); }

  std::promise<void> allow_, kill_, gone_;
  std::shared_future<void> allowed_ = allow_.get_future().share();
  std::shared_future<void> killed_ = kill_.get_future().share();
  FakeBridge fake_;
};

TEST_F(TerminalTest, CtrlCKillsTheCommandAndWaits) {
  Allow();
  Terminal terminal = Start({"exec", "sb-1", "--", "sleep", "1000"});
  terminal.ReadUntil("<>");
  terminal.Type(kCtrlC);
  EXPECT_EQ(terminal.Wait(), 130);
  EXPECT_THAT(terminal.screen(), HasSubstr("interrupted; the command was killed by signal 9; "
                                           "it is gone"));
}

TEST_F(TerminalTest, ASecondCtrlCEndsAtOnce) {
  Terminal terminal = Start({"exec", "sb-1", "--", "sleep", "1000"});
  terminal.ReadUntil("<>");
  terminal.Type(kCtrlC);
  ASSERT_TRUE(fake_.WaitForCall("SignalExec"));  // which does not answer
  terminal.Type(kCtrlC);
  EXPECT_EQ(terminal.Wait(), 130);
  EXPECT_TRUE(ClientIsGone());  // and the bridge kills by on_disconnect
  Allow();
}

TEST_F(TerminalTest, AClosedWindowKillsTheCommand) {
  Allow();
  Terminal terminal = Start({"exec", "sb-1", "--", "sleep", "1000"});
  terminal.ReadUntil("<>");
  terminal.HangUp();
  EXPECT_EQ(terminal.Wait(), 129);
  EXPECT_TRUE(fake_.WaitForCall("SignalExec"));
}

TEST_F(TerminalTest, SigkillLeavesItToTheBridge) {
  Terminal terminal = Start({"exec", "sb-1", "--", "sleep", "1000"});
  terminal.ReadUntil("<>");
  terminal.Signal(SIGKILL);
  EXPECT_EQ(terminal.Wait(), 137);
  EXPECT_TRUE(ClientIsGone());
  Allow();
}

TEST_F(TerminalTest, ATerminalIsNotReadUnlessAsked) {
  Terminal terminal = Start({"exec", "sb-1", "--", "cat"});
  EXPECT_EQ(terminal.Wait(), 0);
  EXPECT_THAT(terminal.screen(), HasSubstr("<>"));
  Allow();
}

TEST_F(TerminalTest, TypedInputEndsWithCtrlD) {
  Terminal terminal = Start({"exec", "-i", "sb-1", "--", "cat"});
  terminal.Type("typed\n");
  terminal.ReadUntil("typed");  // the terminal's echo
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.Wait(), 0);
  EXPECT_THAT(terminal.screen(), HasSubstr("<typed\r\n>"));
  Allow();
}

}  // namespace
}  // namespace bridge::cli
