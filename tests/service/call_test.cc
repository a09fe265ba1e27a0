// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/call.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/service/status.h"
#include "tests/service/call_fixture.h"

namespace bridge::testing {
namespace {

using R = ErrorReason;

constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

v1::ExecEvent Keepalive() {
  v1::ExecEvent event;
  event.mutable_keepalive();
  return event;
}

// ---- the four kinds

TEST(Call, UnaryAnswers) {
  CallServer server({.get = [](GetCall&, const v1::GetSandboxRequest& request,
                               v1::Sandbox& response) -> Task<absl::Status> {
    response.set_sandbox_id("got " + request.sandbox_id());
    co_return absl::OkStatus();
  }});
  auto stub = v1::SandboxService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  v1::GetSandboxRequest request;
  request.set_sandbox_id("s1");
  v1::Sandbox response;
  const grpc::Status status = stub->GetSandbox(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.sandbox_id(), "got s1");
  server.Stop();
  ASSERT_EQ(server.recorder.ended().size(), 1u);
  EXPECT_EQ(server.recorder.ended()[0].code, absl::StatusCode::kOk);
  EXPECT_EQ(server.recorder.ended()[0].method, kGet.name);
}

TEST(Call, AFailureArrivesWithItsDetails) {
  CallServer server(
      {.get = [](GetCall&, const v1::GetSandboxRequest&, v1::Sandbox&) -> Task<absl::Status> {
        co_return MakeError(R::ERROR_REASON_SANDBOX_NOT_FOUND, "no sandbox s1",
                            {.metadata = {{"sandbox_id", "s1"}}});
      }});
  auto stub = v1::SandboxService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  v1::Sandbox response;
  const absl::Status status = FromGrpcStatus(stub->GetSandbox(&context, {}, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_SANDBOX_NOT_FOUND);
  EXPECT_EQ(bridge::MetadataOf(status)["sandbox_id"], "s1");
  EXPECT_EQ(status.message(), "no sandbox s1");
}

TEST(Call, WriterStreamsAndReusesItsMessage) {
  CallServer server(
      {.execute = [](ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
        v1::ExecEvent event;
        for (int i = 0; i < 100; ++i) {
          event.Clear();
          event.mutable_started()->set_pid(i);
          const WriteHint hint = i % 10 == 9 ? WriteHint::kFlush : WriteHint::kMore;
          if (!co_await call.Write(event, hint)) co_return call.Interrupted();
        }
        co_return absl::OkStatus();
      }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto reader = stub->Execute(&context, {});
  v1::ExecEvent event;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(reader->Read(&event));
    EXPECT_EQ(event.started().pid(), i);
  }
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_TRUE(reader->Finish().ok());
}

// The hint on a first message holds it back for ever in gRPC 1.51: Write() must not pass it on.
TEST(Call, AHintedFirstMessageArrives) {
  CallServer server(
      {.execute = [](ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
        const v1::ExecEvent event = Keepalive();
        if (!co_await call.Write(event, WriteHint::kMore)) co_return call.Interrupted();
        while (!co_await Cancelled()) co_await call.loop().Sleep(absl::Seconds(60));
        co_return call.Interrupted();
      }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  auto reader = stub->Execute(&context, {});
  v1::ExecEvent event;
  EXPECT_TRUE(reader->Read(&event));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// While a message is on its way the handler fills the next one.
TEST(Call, AWriterGathers) {
  CallServer server(
      {.execute = [](ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
        v1::ExecEvent messages[2];
        for (int i = 0; i < 50; ++i) {
          v1::ExecEvent& next = messages[i % 2];
          next.Clear();
          next.mutable_started()->set_pid(i);
          const bool alive = co_await call.Written();
          if (!alive) co_return call.Interrupted();
          EXPECT_FALSE(call.write_in_flight());
          call.BeginWrite(next);
          EXPECT_TRUE(call.write_in_flight());
        }
        co_await call.Written();
        co_return absl::OkStatus();
      }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto reader = stub->Execute(&context, {});
  v1::ExecEvent event;
  int got = 0;
  while (reader->Read(&event)) EXPECT_EQ(event.started().pid(), got++);
  EXPECT_EQ(got, 50);
  EXPECT_TRUE(reader->Finish().ok());
}

TEST(Call, ReaderYieldsEveryMessageThenNull) {
  CallServer server({.write_file = [](WriteFileCall& call,
                                      v1::WriteFileResponse& response) -> Task<absl::Status> {
    std::string all;
    v1::WriteFileChunk* chunk = nullptr;
    while ((chunk = co_await call.Read()) != nullptr) all += chunk->data();
    EXPECT_EQ(co_await call.Read(), nullptr);  // and stays null
    EXPECT_EQ(call.interruption(), Interruption::kNone);
    response.set_sha256(all);
    co_return absl::OkStatus();
  }});
  auto stub = v1::FileService::NewStub(server.NewChannel());
  for (const int n : {0, 1, 2, 57}) {
    grpc::ClientContext context;
    v1::WriteFileResponse response;
    auto writer = stub->WriteFile(&context, &response);
    std::string want;
    for (int i = 0; i < n; ++i) {
      v1::WriteFileChunk chunk;
      chunk.set_data(std::to_string(i) + ",");
      want += chunk.data();
      ASSERT_TRUE(writer->Write(chunk));
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.sha256(), want);
  }
}

// A handler may answer before it has read everything.
TEST(Call, AReaderMayStopEarly) {
  CallServer server(
      {.write_file = [](WriteFileCall& call, v1::WriteFileResponse&) -> Task<absl::Status> {
        (void)co_await call.Read();
        co_return InvalidField("header", "is missing");
      }});
  auto stub = v1::FileService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  v1::WriteFileResponse response;
  auto writer = stub->WriteFile(&context, &response);
  v1::WriteFileChunk chunk;
  chunk.set_data(std::string(1000, 'x'));
  while (writer->Write(chunk)) {
  }
  EXPECT_EQ(ReasonOf(FromGrpcStatus(writer->Finish())), R::ERROR_REASON_INVALID_ARGUMENT);
}

TEST(Call, BidiEchoesFromTwoTasks) {
  CallServer server({.attach = [](AttachCall& call) -> Task<absl::Status> {
    std::string pending;
    bool ended = false;
    Waiter wake;
    auto in = [&]() -> Task<void> {
      v1::AttachProcessRequest* message = nullptr;
      while ((message = co_await call.Read()) != nullptr) {
        pending += message->stdin().data();
        wake.Notify(true);
      }
      ended = true;
      // The other pump ends the relay: what was read must still go out.
      wake.Notify(true);
      Waiter rest;
      (void)co_await rest.Wait();
    };
    auto out = [&]() -> Task<void> {
      v1::ProcessEvent event;
      while (true) {
        while (pending.empty() && !ended) {
          const bool woken = co_await wake.Wait();
          if (!woken) co_return;
        }
        if (pending.empty()) co_return;
        event.mutable_output()->mutable_data()->swap(pending);
        pending.clear();
        const bool alive = co_await call.Write(event);
        if (!alive) co_return;
      }
    };
    co_await RunBoth(in, out);
    co_return absl::OkStatus();
  }});
  auto stub = v1::ProcessService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto stream = stub->AttachProcess(&context);
  std::string want, got;
  for (int i = 0; i < 200; ++i) {
    v1::AttachProcessRequest request;
    request.mutable_stdin()->set_data(std::to_string(i) + ";");
    want += request.stdin().data();
    ASSERT_TRUE(stream->Write(request));
  }
  stream->WritesDone();
  v1::ProcessEvent event;
  while (stream->Read(&event)) got += event.output().data();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(got, want);
}

// ---- what the call knows

TEST(Call, TheContextHasKeyTraceAndDeadline) {
  CallContext seen;
  absl::Duration left;
  CallServer server(
      {.get = [&](GetCall& call, const v1::GetSandboxRequest&, v1::Sandbox&) -> Task<absl::Status> {
        seen = call.context();
        left = call.context().deadline - call.loop().Now();
        co_return absl::OkStatus();
      }},
      {.api_key = "bridges-key", .forward_api_keys = true});
  auto stub = v1::SandboxService::NewStub(server.NewChannel());
  {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", kTrace);
    context.AddMetadata("open-sandbox-api-key", "callers-key");
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::Sandbox response;
    ASSERT_TRUE(stub->GetSandbox(&context, {}, &response).ok());
    EXPECT_EQ(seen.api_key, "callers-key");
    EXPECT_EQ(seen.traceparent, kTrace);
    EXPECT_LE(left, absl::Milliseconds(9900));  // twice 50 ms
    EXPECT_GT(left, absl::Milliseconds(8000));
    EXPECT_EQ(server.recorder.ended().back().trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  }
  {
    grpc::ClientContext context;  // no deadline: 30 s for a unary call
    v1::Sandbox response;
    ASSERT_TRUE(stub->GetSandbox(&context, {}, &response).ok());
    EXPECT_EQ(seen.api_key, "bridges-key");
    EXPECT_EQ(seen.traceparent, "");
    EXPECT_GT(left, absl::Seconds(28));
    EXPECT_LT(left, absl::Seconds(30));
  }
}

TEST(Call, AStreamWithoutDeadlineHasNone) {
  absl::Duration deadline;
  CallServer server(
      {.execute = [&](ExecuteCall& call, const v1::ExecuteRequest&) -> Task<absl::Status> {
        deadline = call.context().deadline;
        co_return absl::OkStatus();
      }});
  auto stub = v1::ExecService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  auto reader = stub->Execute(&context, {});
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(deadline, absl::InfiniteDuration());
}

TEST(Call, RepeatedAuthorizationIsRefused) {
  CallServer server({});
  auto stub = v1::SandboxService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer a");
  context.AddMetadata("authorization", "Bearer b");
  v1::Sandbox response;
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stub->GetSandbox(&context, {}, &response))),
            R::ERROR_REASON_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace bridge::testing
