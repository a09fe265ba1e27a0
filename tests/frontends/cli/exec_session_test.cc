// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/exec_session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "tests/frontends/cli/exec_session_fixture.h"

namespace bridge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ExecSessionTest, OutputIsExactStreamsApartAndTheCodeTheCommands) {
  fake_.WillSend({Started(), Output(pb::OUTPUT_STREAM_STDOUT, "a\r\n"),
                  Output(pb::OUTPUT_STREAM_STDERR, "err\n"),
                  Output(pb::OUTPUT_STREAM_STDOUT, std::string("\377b\0", 3), 3), Exited(3),
                  Drained()});
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.out, std::string("a\r\n\377b\0", 6));
  EXPECT_EQ(ran.err, "err\n");
}

TEST_F(ExecSessionTest, OutputAfterTheExitIsPrinted) {
  fake_.WillSend({Started(), Exited(0), Output(pb::OUTPUT_STREAM_STDOUT, "tail"), Drained()});
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "tail");
}

TEST_F(ExecSessionTest, SendsTheCommandAndItsInput) {
  pb::ExecuteRequest seen;
  fake_.on_execute = [&](grpc::ServerContext*, const pb::ExecuteRequest& request,
                         FakeBridge::ExecWriter* writer) {
    seen = request;
    for (const auto& event : {Started(), Exited(0), Drained()}) writer->Write(event);
    return grpc::Status::OK;
  };
  sbx_.SetInput(std::string("in\0put\377", 7));
  EXPECT_EQ(sbx_.Run({"exec", "-w", "/tmp", "sb-1", "--", "wc", "-c"}).exit_code, 0);
  EXPECT_EQ(seen.sandbox_id(), "sb-1");
  EXPECT_THAT(seen.spec().argv().args(), ElementsAre("wc", "-c"));
  EXPECT_EQ(seen.spec().cwd(), "/tmp");
  EXPECT_EQ(seen.spec().stdin(), std::string("in\0put\377", 7));
  EXPECT_EQ(seen.spec().on_disconnect(), pb::ExecSpec::ON_DISCONNECT_UNSPECIFIED);
  EXPECT_FALSE(seen.detached());
}

TEST_F(ExecSessionTest, JsonIsOneLineAnEvent) {
  pb::ExecEvent batch = Output(pb::OUTPUT_STREAM_STDOUT, "one\n");
  *batch.mutable_output_batch()->add_outputs() =
      Output(pb::OUTPUT_STREAM_STDERR, "\377", 5).output_batch().outputs(0);
  pb::ExecEvent keepalive;
  keepalive.mutable_keepalive();
  fake_.WillSend({Started("ex-1"), keepalive, batch, Exited(7), Drained()});
  const Ran ran = sbx_.Run({"exec", "--json", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 7);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, R"({"started":{"exec_id":"ex-1","fidelity":"BYTES","incarnation":"","pid":0}})"
                     "\n"
                     R"({"output":{"stream":"STDOUT","offset":0,"data":"one\n"}})"
                     "\n"
                     R"({"output":{"stream":"STDERR","offset":5,"data_base64":"/w=="}})"
                     "\n"
                     R"({"exited":{"outcome":{"exit_code":7}}})"
                     "\n"
                     R"({"drained":{"stdout_bytes":0,"stderr_bytes":0,"stdout_truncated":false,)"
                     R"("stderr_truncated":false,"lossy":false}})"
                     "\n");
}

TEST_F(ExecSessionTest, EndsOtherThanExitAreExplained) {
  pb::Outcome outcome;
  outcome.mutable_timed_out()->mutable_after()->set_seconds(2);
  fake_.WillSend({Started(), Ended(outcome), Drained()});
  Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 124);
  EXPECT_EQ(ran.err, "sbx: the command timed out after 2s and was killed\n");

  outcome.mutable_spawn_failed()->set_kind(pb::Outcome::SpawnFailed::KIND_NOT_FOUND);
  fake_.WillSend({Started(), Ended(outcome), Drained()});
  ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 127);
  EXPECT_EQ(ran.err, "sbx: the command could not be started: no such program\n");

  outcome.mutable_signal()->set_number(11);
  outcome.mutable_signal()->set_name("SIGSEGV");
  fake_.WillSend({Started(), Ended(outcome), Drained()});
  ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 139);
  EXPECT_EQ(ran.err, "sbx: the command was killed by SIGSEGV\n");
}

TEST_F(ExecSessionTest, AnUnknownEndIsNoExitCode) {
  pb::Outcome outcome;
  outcome.mutable_lost()->set_reason("the stream ended before an exit status");
  fake_.WillSend({Started(), Ended(outcome), Drained()});
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("OUTCOME_LOST: the command ended in a way that is not known: the "
                                 "stream ended before"));
}

TEST_F(ExecSessionTest, AStreamWithoutAnOutcomeIsAFailure) {
  fake_.WillSend({Started(), Output(pb::OUTPUT_STREAM_STDOUT, "part")});
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_EQ(ran.out, "part");
  EXPECT_THAT(ran.err, HasSubstr("without an outcome"));
}

TEST_F(ExecSessionTest, AFailedCallIs125WithTheBridgesWords) {
  fake_.on_execute = [](grpc::ServerContext*, const pb::ExecuteRequest&, FakeBridge::ExecWriter*) {
    return ErrorStatus(pb::ERROR_REASON_SANDBOX_NOT_FOUND, grpc::StatusCode::NOT_FOUND,
                       "sandbox sb-1 is gone");
  };
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("sbx: SANDBOX_NOT_FOUND: sandbox sb-1 is gone\n     The sandbox"));
}

TEST_F(ExecSessionTest, LossesAreNoted) {
  pb::ExecEvent drained = Drained();
  drained.mutable_drained()->set_stdout_truncated(true);
  drained.mutable_drained()->set_stdout_bytes(900);
  drained.mutable_drained()->set_lossy(true);
  fake_.WillSend({Started("ex", pb::FIDELITY_LINES), Exited(0), drained});
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("output was cut: 900 bytes of stdout"));
  EXPECT_THAT(ran.err, HasSubstr("may differ"));
}

TEST_F(ExecSessionTest, LinesThatWereAskedForAreNoLoss) {
  pb::ExecEvent drained = Drained();
  drained.mutable_drained()->set_lossy(true);
  fake_.WillSend({Started("ex", pb::FIDELITY_LINES), Exited(0), drained});
  EXPECT_EQ(sbx_.Run({"exec", "--fidelity=lines", "sb-1", "--", "x"}).err, "");
}

// Known to be so, known not to be so, and not known are three things, as in the message.
TEST_F(ExecSessionTest, WhatMayStillPrintIsTold) {
  pb::ExecEvent drained = Drained();
  for (const bool still_open : {true, false}) {
    drained.mutable_drained()->set_still_open(still_open);
    fake_.WillSend({Started(), Exited(0), drained});
    const Ran ran = sbx_.Run({"exec", "sb-1", "--", "x"});
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_EQ(ran.err, still_open
                           ? "sbx: a process that the command left behind may print more, which is "
                             "not shown\n"
                           : "");
    fake_.WillSend({Started(), Exited(0), drained});
    const Ran json = sbx_.Run({"exec", "--json", "sb-1", "--", "x"});
    EXPECT_EQ(json.err, "");
    EXPECT_THAT(json.out, HasSubstr(still_open ? R"("lossy":false,"still_open":true}})"
                                               : R"("lossy":false,"still_open":false}})"));
  }
}

TEST_F(ExecSessionTest, DetachedPrintsTheExecId) {
  fake_.on_execute = [](grpc::ServerContext*, const pb::ExecuteRequest& request,
                        FakeBridge::ExecWriter* writer) {
    EXPECT_TRUE(request.detached());
    writer->Write(Started("ex-42"));
    return grpc::Status::OK;
  };
  const Ran ran = sbx_.Run({"exec", "-d", "sb-1", "--", "x"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "ex-42\n");
  EXPECT_EQ(ran.err, "");
}

TEST_F(ExecSessionTest, CtrlCKillsAndWaitsForTheEnd) {
  RunsUntilKilled(/*answers_signals=*/true);
  auto ran = StartAndAwaitOutput();
  sbx_.interrupts().Deliver(SIGINT);
  const Ran result = ran.get();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.err, "sbx: interrupted; the command was killed by SIGKILL; it is gone\n");
  EXPECT_EQ(signal_request_.exec_id(), "ex-7");
  EXPECT_EQ(signal_request_.sandbox_id(), "sb-1");
  EXPECT_EQ(signal_request_.signal().number(), SIGKILL);
  EXPECT_EQ(sbx_.ended_at_once(), 0);
}

TEST_F(ExecSessionTest, SigtermIsTheSameWithItsOwnCode) {
  RunsUntilKilled(/*answers_signals=*/true);
  auto ran = StartAndAwaitOutput();
  sbx_.interrupts().Deliver(SIGTERM);
  EXPECT_EQ(ran.get().exit_code, 143);
}

TEST_F(ExecSessionTest, WithoutSignalsTheCallIsCancelledAndNothingClaimed) {
  RunsUntilKilled(/*answers_signals=*/false);
  auto ran = StartAndAwaitOutput();
  sbx_.interrupts().Deliver(SIGINT);
  const Ran result = ran.get();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("has not confirmed it"));
  EXPECT_TRUE(WasCancelled());
}

TEST_F(ExecSessionTest, BeforeTheStartTheCallIsCancelled) {
  std::promise<void> cancelled;
  fake_.on_execute = [&](grpc::ServerContext* context, const pb::ExecuteRequest&,
                         FakeBridge::ExecWriter*) {
    while (!context->IsCancelled()) std::this_thread::yield();
    cancelled.set_value();
    return grpc::Status::CANCELLED;
  };
  auto ran = Start();
  ASSERT_TRUE(fake_.WaitForCall("Execute"));
  sbx_.interrupts().Deliver(SIGINT);
  EXPECT_EQ(ran.get().exit_code, 130);
  cancelled.get_future().get();
}

TEST_F(ExecSessionTest, ASecondSignalEndsAtOnce) {
  RunsUntilKilled(/*answers_signals=*/true);
  std::promise<void> allow;
  fake_.on_signal = [this, allowed = allow.get_future().share()](const auto&, auto*) {
    allowed.wait();  // a kill that takes long
    kill_.set_value();
    return grpc::Status::OK;
  };
  auto ran = StartAndAwaitOutput();
  sbx_.interrupts().Deliver(SIGINT);
  sbx_.interrupts().Deliver(SIGINT);
  EXPECT_EQ(sbx_.ended_at_once(), 130);
  allow.set_value();
  EXPECT_EQ(ran.get().exit_code, 130);
}

TEST_F(ExecSessionTest, AnExitThatWinsTheRaceIsTheResult) {
  RunsUntilKilled(/*answers_signals=*/true);
  fake_.on_signal = [&](const auto&, auto*) {
    return ErrorStatus(pb::ERROR_REASON_PROCESS_NOT_FOUND, grpc::StatusCode::NOT_FOUND, "over");
  };
  fake_.on_execute = [&](grpc::ServerContext*, const pb::ExecuteRequest&,
                         FakeBridge::ExecWriter* writer) {
    writer->Write(Started());
    writer->Write(Output(pb::OUTPUT_STREAM_STDOUT, "running\n"));
    fake_.WaitForCall("SignalExec");
    writer->Write(Exited(5));
    writer->Write(Drained());
    return grpc::Status::OK;
  };
  auto ran = StartAndAwaitOutput();
  sbx_.interrupts().Deliver(SIGINT);
  EXPECT_EQ(ran.get().exit_code, 5);
}

TEST_F(ExecSessionTest, AReaderThatWentAwayKillsTheCommand) {
  RunsUntilKilled(/*answers_signals=*/true);
  close(pipe_[0]);
  pipe_[0] = -1;
  sbx_.set_out(pipe_[1]);
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "yes"});
  EXPECT_EQ(ran.exit_code, 141);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(signal_request_.signal().number(), SIGKILL);
}

TEST_F(ExecSessionTest, AFullDiskKillsTheCommandAndSaysSo) {
  RunsUntilKilled(/*answers_signals=*/true);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
  sbx_.set_out(full);
  const Ran ran = sbx_.Run({"exec", "sb-1", "--", "yes"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("No space left on device"));
  close(full);
}

}  // namespace
}  // namespace bridge::cli
