// SPDX-License-Identifier: Apache-2.0
//
// `sbx run`, and what `sbx exec` does with stdin.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <future>
#include <sstream>
#include <thread>

#include "frontends/cli/json.h"
#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ExecCommandsTest : public ::testing::Test {
 protected:
  ExecCommandsTest() {
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0);
    fake_.on_create = [this](const pb::CreateSandboxRequest& request,
                             pb::CreateSandboxResponse* response) {
      created_ = request;
      response->mutable_sandbox()->set_sandbox_id("sb-new");
      return grpc::Status::OK;
    };
    fake_.on_delete = [this](const pb::DeleteSandboxRequest& request,
                             pb::DeleteSandboxResponse* response) {
      EXPECT_EQ(request.sandbox_id(), "sb-new");
      response->set_verdict(verdict_);
      return grpc::Status::OK;
    };
    fake_.WillSend({Started(), Output(pb::OUTPUT_STREAM_STDOUT, "42\n"), Exited(3), Drained()});
  }
  ~ExecCommandsTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  // Sees what Execute was asked, and ends with exit code 0.
  void Capture() {
    fake_.on_execute = [this](grpc::ServerContext*, const pb::ExecuteRequest& request,
                              FakeBridge::ExecWriter* writer) {
      executed_ = request;
      if (during_) during_();
      for (const auto& event : {Started(), Exited(0), Drained()}) writer->Write(event);
      return grpc::Status::OK;
    };
  }

  std::array<int, 2> pipe_ = {-1, -1};
  pb::CreateSandboxRequest created_;
  pb::ExecuteRequest executed_;
  pb::DeleteSandboxResponse::Verdict verdict_ = pb::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE;
  std::function<void()> during_;
  FakeBridge fake_;
  Sbx sbx_{fake_.address()};
};

TEST_F(ExecCommandsTest, RunCreatesExecutesAndDeletes) {
  const Ran ran = sbx_.Run({"run", "--image", "x:1", "--", "python3", "-c", "print(42)"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.out, "42\n");
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(created_.spec().image(), "x:1");
  EXPECT_THAT(fake_.calls(), ElementsAre("CreateSandbox", "Execute", "DeleteSandbox"));
}

TEST_F(ExecCommandsTest, TheEnvironmentOfRunIsTheCommands) {
  Capture();
  sbx_.Run({"run", "-e", "A=1", "--", "env"});
  EXPECT_EQ(created_.spec().env_size(), 0);
  EXPECT_EQ(executed_.spec().env(0).value(), "1");
  EXPECT_EQ(executed_.sandbox_id(), "sb-new");
}

TEST_F(ExecCommandsTest, KeepLeavesTheSandboxAndNamesIt) {
  const Ran ran = sbx_.Run({"run", "--keep", "--", "x"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.err, "sbx: kept sandbox sb-new\n");
  EXPECT_THAT(fake_.calls(), ElementsAre("CreateSandbox", "Execute"));
}

TEST_F(ExecCommandsTest, AFailedCreateIs125AndRunsNothing) {
  fake_.on_create = [](const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_QUOTA_EXCEEDED, grpc::StatusCode::RESOURCE_EXHAUSTED, "no");
  };
  const Ran ran = sbx_.Run({"run", "--", "x"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(fake_.calls(), ElementsAre("CreateSandbox"));
}

TEST_F(ExecCommandsTest, AFailedExecStillDeletes) {
  fake_.on_execute = [](auto*, const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_SANDBOX_UNREACHABLE, grpc::StatusCode::UNAVAILABLE, "no");
  };
  EXPECT_EQ(sbx_.Run({"run", "--", "x"}).exit_code, 125);
  EXPECT_EQ(fake_.calls().back(), "DeleteSandbox");
}

TEST_F(ExecCommandsTest, AnUnprovenDeletionIsSaidAndTheCodeStaysTheCommands) {
  verdict_ = pb::DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED;
  Ran ran = sbx_.Run({"run", "--", "x"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.err, HasSubstr("sandbox sb-new may be left behind; remove it with: sbx rm"));
  fake_.on_delete = [](const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_UPSTREAM_UNAVAILABLE, grpc::StatusCode::UNAVAILABLE, "no");
  };
  ran = sbx_.Run({"run", "--", "x"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.err, HasSubstr("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(ran.err, HasSubstr("may be left behind"));
}

TEST_F(ExecCommandsTest, CtrlCDuringRunKillsAndStillDeletes) {
  std::promise<void> killed;
  fake_.on_execute = [&](grpc::ServerContext*, const pb::ExecuteRequest&,
                         FakeBridge::ExecWriter* writer) {
    writer->Write(Started("ex-1"));
    writer->Write(Output(pb::OUTPUT_STREAM_STDOUT, "up\n"));
    killed.get_future().wait();
    pb::Outcome outcome;
    outcome.mutable_cancelled()->set_confirmed(true);
    writer->Write(Ended(outcome));
    writer->Write(Drained());
    return grpc::Status::OK;
  };
  fake_.on_signal = [&](const auto&, auto*) {
    killed.set_value();
    return grpc::Status::OK;
  };
  sbx_.set_out(pipe_[1]);
  auto ran = std::async(std::launch::async, [&] { return sbx_.Run({"run", "--", "x"}); });
  std::array<char, 3> up;
  ASSERT_EQ(read(pipe_[0], up.data(), up.size()), 3);
  sbx_.interrupts().Deliver(SIGINT);
  EXPECT_EQ(ran.get().exit_code, 130);
  EXPECT_EQ(fake_.calls().back(), "DeleteSandbox");
}

TEST_F(ExecCommandsTest, RunAsJsonIsALineAnEvent) {
  const Ran ran = sbx_.Run({"run", "--json", "--", "x"});
  std::vector<std::string> keys;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    keys.push_back(Json::parse(line).begin().key());
  }
  EXPECT_THAT(keys, ElementsAre("created", "started", "output", "exited", "drained", "deleted"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.err, "");
}

TEST_F(ExecCommandsTest, RunAsJsonThatCannotSayWhatItMadeRunsAndKeepsNothing) {
  sbx_.set_out(12345);  // no descriptor
  const Ran ran = sbx_.Run({"run", "--json", "--keep", "--", "x"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("cannot write output"));
  EXPECT_THAT(fake_.calls(), ElementsAre("CreateSandbox", "DeleteSandbox"));
}

TEST_F(ExecCommandsTest, AMistakeInTheOptionsMakesNoSandbox) {
  EXPECT_EQ(sbx_.Run({"run", "--ttl", "soon", "--", "x"}).exit_code, 125);
  EXPECT_EQ(sbx_.Run({"run"}).exit_code, 125);
  EXPECT_EQ(sbx_.Run({"run", "-i", "-n", "--", "x"}).exit_code, 125);
  EXPECT_THAT(fake_.calls(), IsEmpty());
}

TEST_F(ExecCommandsTest, APipeIsReadToItsEnd) {
  Capture();
  sbx_.set_in(pipe_[0]);
  ASSERT_EQ(write(pipe_[1], "piped", 5), 5);
  close(pipe_[1]);
  pipe_[1] = -1;
  EXPECT_EQ(sbx_.Run({"exec", "sb-1", "--", "wc", "-c"}).exit_code, 0);
  EXPECT_EQ(executed_.spec().stdin(), "piped");
}

// A pipe that never closes, as under many CI systems: the command starts without input.
TEST_F(ExecCommandsTest, APipeThatStaysOpenAndSilentDoesNotHoldUpTheCommand) {
  Capture();
  sbx_.set_in(pipe_[0]);
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "echo", "hi"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(executed_.spec().stdin(), "");
}

TEST_F(ExecCommandsTest, InputThatComesTooLateIsNeverSwallowed) {
  Capture();
  sbx_.set_in(pipe_[0]);
  during_ = [this] { ASSERT_EQ(write(pipe_[1], "late", 4), 4); };
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "cat"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("input came on stdin after the command had started"));
  EXPECT_THAT(ran.err, HasSubstr("Use -i"));
}

TEST_F(ExecCommandsTest, NoStdinLeavesThePipeAlone) {
  Capture();
  sbx_.set_in(pipe_[0]);
  ASSERT_EQ(write(pipe_[1], "mine", 4), 4);
  EXPECT_EQ(sbx_.Run({"exec", "-n", "sb-1", "--", "cat"}).exit_code, 0);
  EXPECT_EQ(executed_.spec().stdin(), "");
  std::array<char, 4> left;
  EXPECT_EQ(read(pipe_[0], left.data(), left.size()), 4);
}

TEST_F(ExecCommandsTest, TooMuchInputIsRefusedBeforeAnythingRuns) {
  sbx_.SetInput(std::string((size_t{8} << 20) + 1, 'x'));
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "cat"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("larger than the 8 MiB"));
  EXPECT_THAT(fake_.calls(), IsEmpty());
}

TEST_F(ExecCommandsTest, CtrlCWhileReadingStdinRunsNothing) {
  sbx_.set_in(pipe_[0]);
  ASSERT_EQ(write(pipe_[1], "x", 1), 1);
  auto ran =
      std::async(std::launch::async, [&] { return sbx_.Run({"exec", "-i", "sb-1", "--", "cat"}); });
  // Once the byte is taken, sbx is reading.
  for (int waiting = 1; waiting != 0; ioctl(pipe_[0], FIONREAD, &waiting)) {
    std::this_thread::yield();
  }
  sbx_.interrupts().Deliver(SIGINT);
  EXPECT_EQ(ran.get().exit_code, 130);
  EXPECT_THAT(fake_.calls(), IsEmpty());
}

}  // namespace
}  // namespace bridge::cli
