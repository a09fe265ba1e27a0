// SPDX-License-Identifier: Apache-2.0
//
// `sbx ps`, `kill`, `logs`.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "frontends/cli/json.h"
#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/harness.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ProcessCommandsTest : public ::testing::Test {
 protected:
  FakeBridge fake_;
  Sbx sbx_{fake_.address()};
};

TEST_F(ProcessCommandsTest, PsShowsProcesses) {
  pb::ListProcessesRequest seen;
  fake_.on_processes = [&](const pb::ListProcessesRequest& request,
                           pb::ListProcessesResponse* response) {
    seen = request;
    pb::ProcessInfo* process = response->add_processes();
    process->set_process_id("pr-1");
    process->set_pid(42);
    process->set_parent_pid(1);
    process->set_user("root");
    process->add_command_line("vi");
    process->add_command_line("a b\x1b");
    process->set_state(pb::ProcessInfo::STATE_RUNNING);
    process = response->add_processes();
    process->set_process_id("pr-2");
    process->set_state(pb::ProcessInfo::STATE_EXITED);
    process->mutable_outcome()->set_exit_code(7);
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"ps", "-a", "sb-1"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(seen.all());
  EXPECT_THAT(ran.out, StartsWith("PID  PPID  USER  PROCESS  STATE"));
  EXPECT_THAT(ran.out, HasSubstr("\n42   1     root  pr-1     running"));
  EXPECT_THAT(ran.out, HasSubstr("vi a b\\x1b\n"));
  EXPECT_THAT(ran.out, HasSubstr("\n?    ?           pr-2     ended with exit code 7  \n"));
  EXPECT_EQ(Json::parse(sbx_.Run({"ps", "--json", "sb-1"}).out)["processes"][0]["pid"], 42);
}

TEST_F(ProcessCommandsTest, KillTakesPidsAndProcessIds) {
  pb::SignalProcessRequest seen;
  pb::SignalProcessResponse answer;
  fake_.on_signal_process = [&](const pb::SignalProcessRequest& request,
                                pb::SignalProcessResponse* response) {
    seen = request;
    *response = answer;
    return grpc::Status::OK;
  };
  EXPECT_EQ(sbx_.Run({"kill", "sb-1", "42"}).out, "sent; whether it was delivered is not known\n");
  EXPECT_EQ(seen.pid(), 42);
  EXPECT_EQ(seen.signal().name(), "TERM");
  EXPECT_FALSE(seen.group());
  answer.set_delivery_confirmed(true);
  EXPECT_EQ(sbx_.Run({"kill", "-g", "-s", "int", "sb-1", "pr-1"}).out, "delivered\n");
  EXPECT_EQ(seen.process_id(), "pr-1");
  EXPECT_EQ(seen.signal().name(), "INT");
  EXPECT_TRUE(seen.group());
  answer.set_ended(true);
  EXPECT_EQ(sbx_.Run({"kill", "-s9", "sb-1", "42"}).out, "it is gone\n");
  EXPECT_EQ(seen.signal().number(), 9);
}

TEST_F(ProcessCommandsTest, KillOfAnExec) {
  pb::SignalExecRequest seen;
  fake_.on_signal = [&](const pb::SignalExecRequest& request, pb::SignalExecResponse* response) {
    seen = request;
    response->set_ended(true);
    return grpc::Status::OK;
  };
  EXPECT_EQ(sbx_.Run({"kill", "--exec", "sb-1", "ex-1"}).out, "it is gone\n");
  EXPECT_EQ(seen.exec_id(), "ex-1");
}

TEST_F(ProcessCommandsTest, WhatCannotBeSignalledIsRefusedHere) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"sb-1", "1"},
                                             {"sb-1", "0"},
                                             {"--", "sb-1", "-1"},
                                             {"-s", "65", "sb-1", "42"},
                                             {"-s", "0", "sb-1", "42"},
                                             {"-s", "NOPE", "sb-1", "42"}}) {
    std::vector<std::string> line = {"kill"};
    line.insert(line.end(), args.begin(), args.end());
    EXPECT_EQ(sbx_.Run(line).exit_code, 2) << args[0] << ' ' << args[1];
  }
  EXPECT_THAT(fake_.calls(), IsEmpty());
}

TEST_F(ProcessCommandsTest, LogsPrintsBytesAsTheyAre) {
  pb::GetDiagnosticsRequest seen;
  fake_.on_diagnostics = [&](const pb::GetDiagnosticsRequest& request,
                             pb::GetDiagnosticsResponse* response) {
    seen = request;
    response->set_text("line\r\n\xff");
    response->set_truncated(true);
    response->set_redacted(true);
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"logs", "--tail=5", "sb-1"});
  EXPECT_EQ(ran.out, "line\r\n\xff");
  EXPECT_THAT(ran.err, HasSubstr("only the newest part"));
  EXPECT_THAT(ran.err, HasSubstr("secrets were replaced"));
  EXPECT_EQ(seen.tail(), 5);
  EXPECT_EQ(seen.kind(), pb::GetDiagnosticsRequest::KIND_LOGS);
  sbx_.Run({"logs", "--events", "sb-1"});
  EXPECT_EQ(seen.kind(), pb::GetDiagnosticsRequest::KIND_EVENTS);
  sbx_.Run({"logs", "--inspect", "sb-1"});
  EXPECT_EQ(seen.kind(), pb::GetDiagnosticsRequest::KIND_INSPECT);
  sbx_.Run({"logs", "--summary", "sb-1"});
  EXPECT_EQ(seen.kind(), pb::GetDiagnosticsRequest::KIND_SUMMARY);
  EXPECT_EQ(sbx_.Run({"logs", "--tail=0", "sb-1"}).exit_code, 2);
}

TEST_F(ProcessCommandsTest, LogsRefuseOptionsThatSayTwoThings) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"logs", "--events", "--summary", "sb-1"},
        {"logs", "--inspect", "--events", "sb-1"},
        {"logs", "--summary", "sb-1", "ex-1"},
        {"logs", "--tail=5", "sb-1", "ex-1"}}) {
    const Ran ran = sbx_.Run(args);
    EXPECT_EQ(ran.exit_code, 2) << args[1];
    EXPECT_THAT(ran.err, HasSubstr("--events, --inspect")) << args[1];
  }
}

TEST_F(ProcessCommandsTest, LogsOfAnExecFollowItToItsExitCode) {
  fake_.on_attach = [&](grpc::ServerContext*, const pb::AttachExecRequest& request,
                        FakeBridge::ExecWriter* writer) {
    EXPECT_EQ(request.exec_id(), "ex-1");
    EXPECT_EQ(request.stdout_offset(), 0);
    EXPECT_EQ(request.on_disconnect(), pb::ExecSpec::ON_DISCONNECT_UNSPECIFIED);
    for (const auto& event : {Started("ex-1"), Output(pb::OUTPUT_STREAM_STDOUT, "out"),
                              Output(pb::OUTPUT_STREAM_STDERR, "err"), Exited(5), Drained()}) {
      writer->Write(event);
    }
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"logs", "sb-1", "ex-1"});
  EXPECT_EQ(ran.exit_code, 5);
  EXPECT_EQ(ran.out, "out");
  EXPECT_EQ(ran.err, "err");
}

// What is not all, or is no exit code, must not look as if it were.
TEST_F(ProcessCommandsTest, LogsOfAnExecSayWhatIsMissing) {
  std::vector<pb::ExecEvent> events = {Output(pb::OUTPUT_STREAM_STDOUT, "out")};
  fake_.on_attach = [&](grpc::ServerContext*, const pb::AttachExecRequest&,
                        FakeBridge::ExecWriter* writer) {
    for (const auto& event : events) writer->Write(event);
    return grpc::Status::OK;
  };
  Ran ran = sbx_.Run({"logs", "sb-1", "ex-1"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("UPSTREAM_PROTOCOL"));
  pb::Outcome lost;
  lost.mutable_lost()->set_reason("the sandbox went away");
  pb::ExecEvent drained = Drained();
  drained.mutable_drained()->set_lossy(true);
  events = {Ended(lost), drained};
  ran = sbx_.Run({"logs", "sb-1", "ex-1"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("the sandbox went away"));
  EXPECT_THAT(ran.err, HasSubstr("may differ"));
  drained = Drained();
  drained.mutable_drained()->set_stderr_truncated(true);
  events = {Exited(0), drained};
  ran = sbx_.Run({"logs", "sb-1", "ex-1"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("output was cut"));
  drained = Drained();
  drained.mutable_drained()->set_still_open(true);
  events = {Exited(0), drained};
  EXPECT_THAT(sbx_.Run({"logs", "sb-1", "ex-1"}).err, HasSubstr("may print more"));
  const Ran json = sbx_.Run({"logs", "--json", "sb-1", "ex-1"});
  EXPECT_EQ(json.err, "");
  EXPECT_THAT(json.out, HasSubstr(R"("still_open":true}})"));
}

TEST_F(ProcessCommandsTest, LogsThatCannotBeWrittenAreALocalFailure) {
  fake_.on_attach = [&](grpc::ServerContext*, const pb::AttachExecRequest&,
                        FakeBridge::ExecWriter* writer) {
    for (const auto& event : {Output(pb::OUTPUT_STREAM_STDOUT, "out"), Exited(0), Drained()}) {
      writer->Write(event);
    }
    return grpc::Status::OK;
  };
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  sbx_.set_out(full);
  const Ran ran = sbx_.Run({"logs", "sb-1", "ex-1"});
  close(full);
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("No space left"));
}

TEST_F(ProcessCommandsTest, AGapIsAFailure) {
  fake_.on_attach = [&](grpc::ServerContext*, const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_REPLAY_GAP, grpc::StatusCode::DATA_LOSS, "gone");
  };
  const Ran ran = sbx_.Run({"logs", "sb-1", "ex-1"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, StartsWith("sbx: REPLAY_GAP: gone\n"));
}

TEST_F(ProcessCommandsTest, CtrlCLeavesTheExecAlone) {
  fake_.on_attach = [&](grpc::ServerContext* context, const auto&, FakeBridge::ExecWriter* writer) {
    writer->Write(Output(pb::OUTPUT_STREAM_STDOUT, "up"));
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  std::array<int, 2> pipe;
  ASSERT_EQ(pipe2(pipe.data(), O_CLOEXEC), 0);
  sbx_.set_out(pipe[1]);
  auto ran = std::async(std::launch::async, [&] { return sbx_.Run({"logs", "sb-1", "ex-1"}); });
  std::array<char, 2> up;
  ASSERT_EQ(read(pipe[0], up.data(), up.size()), 2);
  sbx_.interrupts().Deliver(SIGINT);
  EXPECT_EQ(ran.get().exit_code, 130);
  EXPECT_THAT(fake_.calls(), ::testing::ElementsAre("AttachExec"));
  close(pipe[0]);
  close(pipe[1]);
}

}  // namespace
}  // namespace bridge::cli
