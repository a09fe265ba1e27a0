// SPDX-License-Identifier: Apache-2.0
//
// Calls that end before their handler is done: deadlines, cancellation, vanished clients, draining,
// limits.
#include "bridge/service/call.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/service/status.h"
#include "tests/fakes/raw_call.h"
#include "tests/service/call_fixture.h"

namespace bridge::testing {
namespace {

using R = ErrorReason;
using ::testing::HasSubstr;

// Waits until it is interrupted.
Task<absl::Status> WaitForEver(CallBase& call, const char* what) {
  call.set_waiting_for(what);
  Waiter never;
  (void)co_await never.Wait();
  co_return absl::CancelledError();
}

TEST(CallEnd, OverTheCallersDeadlineTheAnswerSaysWhatItWaitedFor) {
  CallServer server({.get = [](GetCall& call, const v1::GetSandboxRequest&, v1::Sandbox&) {
    return WaitForEver(call, "the upstream's answer");
  }});
  auto stub = v1::SandboxService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  const auto start = std::chrono::steady_clock::now();
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(1000));
  v1::Sandbox response;
  const absl::Status status = FromGrpcStatus(stub->GetSandbox(&context, {}, &response));
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_DEADLINE_EXCEEDED);
  EXPECT_EQ(bridge::MetadataOf(status)["waiting_for"], "the upstream's answer");
  EXPECT_THAT(std::string(status.message()), HasSubstr("the upstream's answer"));
  EXPECT_GE(took, std::chrono::milliseconds(900));
}

TEST(CallEnd, WithoutACallersDeadlineTheMethodsDefaultHolds) {
  CallServer server({.get_method = kGet.WithDefaultDeadline(absl::Milliseconds(50)),
                     .get = [](GetCall& call, const v1::GetSandboxRequest&, v1::Sandbox&) {
                       return WaitForEver(call, "a test");
                     }});
  auto stub = v1::SandboxService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  v1::Sandbox response;
  const absl::Status status = FromGrpcStatus(stub->GetSandbox(&context, {}, &response));
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_DEADLINE_EXCEEDED);
  EXPECT_EQ(status.message(), "the call's time of 50ms was over while waiting for a test");
}

TEST(CallEnd, ACancelledCallIsRecordedAsCancelledWithItsOperation) {
  Flag running;
  CallServer server({.execute = [&](ExecuteCall& call, const v1::ExecuteRequest&) {
    running.Set();
    return WaitForEver(call, "output");
  }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto reader = stub->Execute(&context, {});
  ASSERT_TRUE(running.Wait());
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server.Stop();
  ASSERT_EQ(server.recorder.ended().size(), 1u);
  EXPECT_EQ(server.recorder.ended()[0].reason, R::ERROR_REASON_CANCELLED);
  EXPECT_EQ(server.recorder.ended()[0].waiting_for, "output");
}

// A handler that ends OK after it was cut must not make a part look like the whole.
TEST(CallEnd, ACutStreamNeverEndsOk) {
  CallServer server(
      {.execute_method = kExecute.WithDefaultDeadline(absl::Milliseconds(50)),
       .execute = [](ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
         (void)co_await WaitForEver(call, "output");
         co_return absl::OkStatus();
       }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto reader = stub->Execute(&context, {});
  v1::ExecEvent event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(ReasonOf(FromGrpcStatus(reader->Finish())), R::ERROR_REASON_DEADLINE_EXCEEDED);
}

// Clean-up may know more than "cancelled", and what it knows must reach the caller.
TEST(CallEnd, WhatTheHandlerKnowsGoesBeforeTheBareInterruption) {
  bool own_reason = false;
  CallServer server(
      {.get_method = kGet.WithDefaultDeadline(absl::Milliseconds(20)),
       .get = [&](GetCall& call, const v1::GetSandboxRequest&, v1::Sandbox&) -> Task<absl::Status> {
         const absl::Status cancelled = co_await WaitForEver(call, "readiness");
         if (own_reason) {
           co_return MakeError(R::ERROR_REASON_READY_TIMEOUT, "not ready",
                               {.metadata = {{"leaked_sandbox_id", "s9"}}});
         }
         co_return WithMetadata(cancelled, "leaked_sandbox_id", "s9");
       }});
  auto stub = v1::SandboxService::NewStub(server.NewChannel());
  {
    grpc::ClientContext context;
    v1::Sandbox response;
    const absl::Status status = FromGrpcStatus(stub->GetSandbox(&context, {}, &response));
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_DEADLINE_EXCEEDED);
    EXPECT_EQ(bridge::MetadataOf(status)["leaked_sandbox_id"], "s9");
    EXPECT_EQ(bridge::MetadataOf(status)["waiting_for"], "readiness");
  }
  own_reason = true;
  grpc::ClientContext context;
  v1::Sandbox response;
  const absl::Status status = FromGrpcStatus(stub->GetSandbox(&context, {}, &response));
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_READY_TIMEOUT);
  EXPECT_EQ(bridge::MetadataOf(status)["leaked_sandbox_id"], "s9");
}

// A client that vanishes in the middle of an upload must never look like one that has sent it all.
TEST(CallEnd, AReaderTellsTheEndOfTheStreamFromTheDeathOfItsClient) {
  std::atomic<int> whole{0}, cut{0};
  CallServer server({.write_file = [&](WriteFileCall& call,
                                       v1::WriteFileResponse&) -> Task<absl::Status> {
    while (true) {
      const auto* chunk = co_await call.Read();
      if (chunk == nullptr) break;
    }
    ++(call.interruption() == Interruption::kNone ? whole : cut);
    co_return call.interruption() == Interruption::kNone ? absl::OkStatus() : call.Interrupted();
  }});
  auto stub = v1::FileService::NewStub(server.NewChannel());
  for (int i = 0; i < 300; ++i) {
    grpc::ClientContext context;
    v1::WriteFileResponse response;
    auto writer = stub->WriteFile(&context, &response);
    v1::WriteFileChunk chunk;
    chunk.set_data("half of it");
    ASSERT_TRUE(writer->Write(chunk));
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server.Stop(std::chrono::milliseconds(1000));
  EXPECT_EQ(whole, 0);
  EXPECT_GT(cut, 0);
}

// Half an upload passed for a whole one.
TEST(CallEnd, AMessageThatCannotBeParsedIsNotTheEndOfTheStream) {
  std::atomic<int> read = 0;
  const auto count = [&read](auto& call) -> Task<absl::Status> {
    for (bool more = true; more;) {
      const auto* message = co_await call.Read();
      more = message != nullptr;
      if (more) ++read;
    }
    co_return absl::OkStatus();
  };
  CallServer server(
      {.write_file = [&](WriteFileCall& call, v1::WriteFileResponse&) { return count(call); },
       .attach = [&](AttachCall& call) { return count(call); }});
  v1::WriteFileChunk chunk;
  chunk.set_data("half");
  v1::AttachProcessRequest stdin_bytes;
  stdin_bytes.mutable_stdin()->set_data("half");
  v1::AttachProcessRequest newer;  // with a field that this build does not know
  newer.GetReflection()->MutableUnknownFields(&newer)->AddVarint(1000, 1);
  const std::string write_file = "/sandbox.bridge.v1.FileService/WriteFile";
  const std::string attach = "/sandbox.bridge.v1.ProcessService/AttachProcess";
  for (const auto& [method, good] : {std::pair(write_file, chunk.SerializeAsString()),
                                     std::pair(attach, stdin_bytes.SerializeAsString()),
                                     std::pair(attach, newer.SerializeAsString())}) {
    for (const char* bad : {"\x0a", "\xff\xff\xff"}) {  // a length, and a tag, cut short
      read = 0;
      const absl::Status status =
          FromGrpcStatus(RawCall(server.NewChannel(), method, {good, good, bad}));
      EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_INVALID_ARGUMENT) << method << status;
      EXPECT_LE(read, 2);
    }
    for (const std::string& last : {std::string(), good}) {
      read = 0;
      EXPECT_TRUE(RawCall(server.NewChannel(), method, {good, last}).ok()) << method;
      EXPECT_EQ(read, 2) << "an empty message is one, too";
    }
  }
}

TEST(CallEnd, ReadsOfABidiEndWithNullWhenTheCallIsInterrupted) {
  Flag running;
  CallServer server({.attach = [&](AttachCall& call) -> Task<absl::Status> {
    running.Set();
    const auto* message = co_await call.Read();
    EXPECT_EQ(message, nullptr);
    co_return call.Interrupted();
  }});
  auto stub = v1::ProcessService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto stream = stub->AttachProcess(&context);
  ASSERT_TRUE(running.Wait());
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server.Stop();
  EXPECT_EQ(server.recorder.ended().at(0).reason, R::ERROR_REASON_CANCELLED);
}

TEST(CallEnd, AVanishedConnectionInterruptsItsCalls) {
  Flag running;
  CallServer server({.execute = [&](ExecuteCall& call, const v1::ExecuteRequest&) {
    running.Set();
    return WaitForEver(call, "output");
  }});
  {
    auto channel = server.NewChannel();
    auto stub = v1::ExecService::NewStub(channel);
    grpc::ClientContext context;
    auto reader = stub->Execute(&context, {});
    ASSERT_TRUE(running.Wait());
    context.TryCancel();
    (void)reader->Finish();
  }
  EXPECT_TRUE(Eventually([&] { return server.host().live() == 0; }));
}

TEST(CallEnd, DrainingInterruptsWithAReasonToRetry) {
  Flag running;
  CallServer server({.execute = [&](ExecuteCall& call, const v1::ExecuteRequest&) {
    running.Set();
    return WaitForEver(call, "output");
  }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto reader = stub->Execute(&context, {});
  ASSERT_TRUE(running.Wait());
  server.host().StartDraining(absl::Seconds(2));
  EXPECT_EQ(server.host().live(), 1);  // draining alone ends nothing
  server.host().InterruptAll();
  const absl::Status status = FromGrpcStatus(reader->Finish());
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_DRAINING);
  EXPECT_EQ(RetryAfterOf(status), absl::Seconds(2));
  EXPECT_EQ(MetadataOf(status)["waiting_for"], "output");

  grpc::ClientContext late;
  const absl::Status refused = FromGrpcStatus(stub->Execute(&late, {})->Finish());
  EXPECT_EQ(ReasonOf(refused), R::ERROR_REASON_DRAINING);
  // By this clients know that nothing was done, and that they may repeat it blindly.
  EXPECT_FALSE(MetadataOf(refused).contains("waiting_for"));
}

TEST(CallEnd, LiveCallsShowMethodAndOperation) {
  Flag running;
  CallServer server({.execute = [&](ExecuteCall& call, const v1::ExecuteRequest&) {
    auto task = WaitForEver(call, "output of the command");
    call.loop().Post([&] { running.Set(); });
    return task;
  }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto reader = stub->Execute(&context, {});
  ASSERT_TRUE(running.Wait());
  EXPECT_THAT(server.host().DescribeLiveCalls(),
              HasSubstr("method=sandbox.bridge.v1.ExecService/Execute "
                        "waiting_for=\"output of the command\""));
  context.TryCancel();
  (void)reader->Finish();
}

// ---- limits

TEST(CallEnd, TheNextStreamIsAdmittedAsSoonAsTheCallerSawTheEndOfTheLast) {
  CallServer server({.execute = [](ExecuteCall&, const v1::ExecuteRequest&) -> Task<absl::Status> {
                      co_return absl::OkStatus();
                    }},
                    {.limits = {.global = {.streams = 1}}});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    const grpc::Status status = stub->Execute(&context, {})->Finish();
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
}

TEST(CallEnd, AboveTheLimitTheCallerIsToldToWait) {
  Flag running;
  CallServer server({.execute =
                         [&](ExecuteCall& call, const v1::ExecuteRequest&) {
                           running.Set();
                           return WaitForEver(call, "output");
                         }},
                    {.limits = {.global = {.streams = 1}}});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext first;
  auto reader = stub->Execute(&first, {});
  ASSERT_TRUE(running.Wait());
  grpc::ClientContext second;
  const absl::Status status = FromGrpcStatus(stub->Execute(&second, {})->Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_TOO_MANY_STREAMS);
  EXPECT_TRUE(RetryAfterOf(status).has_value());
  first.TryCancel();
  (void)reader->Finish();
}

}  // namespace
}  // namespace bridge::testing
