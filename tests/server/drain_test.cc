// SPDX-License-Identifier: Apache-2.0
//
// A bridge that is told to end while commands run in a (local) sandbox.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/local/local_opensandbox.h"
#include "bridge/service/status.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/fakes/execd_process.h"
#include "tests/server/bridge_process.h"
#include "tests/server/http_get.h"
#include "tests/server/raw_call.h"
#include "tests/server/server_fixture.h"

namespace bridge::testing {
namespace {

using R = ErrorReason;
using std::chrono::milliseconds;

// One command, followed from start to end by gRPC's threads.
class Execution final : public grpc::ClientReadReactor<v1::ExecEvent> {
 public:
  Execution(v1::ExecService::Stub& stub, const std::string& sandbox, const std::string& shell) {
    request_.set_sandbox_id(sandbox);
    request_.mutable_spec()->set_shell(shell);
    stub.async()->Execute(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  ~Execution() override {
    context_.TryCancel();
    EXPECT_TRUE(Eventually([this] { return ended(); }));
  }

  bool started() const { return started_; }
  bool ended() const { return ended_; }
  // After ended().
  const std::string& output() const { return output_; }
  const v1::Outcome& outcome() const { return outcome_; }
  const absl::Status& status() const { return status_; }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    for (const auto& output : event_.output_batch().outputs()) output_ += output.data();
    if (event_.has_exited()) outcome_ = event_.exited().outcome();
    if (event_.has_started()) started_ = true;
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    status_ = FromGrpcStatus(status);
    ended_ = true;
  }

  grpc::ClientContext context_;
  v1::ExecuteRequest request_;
  v1::ExecEvent event_;
  std::atomic<bool> started_{false}, ended_{false};
  std::string output_;
  v1::Outcome outcome_;
  absl::Status status_;
};

class Drain : public ::testing::Test {
 protected:
  void SetUp() override {
    local::LocalOptions options;
    options.api_key = "key";
    options.isolation = local::runtime::Isolation::kNone;
    auto started = local::LocalOpenSandbox::Start(std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    local_ = *std::move(started);
    const std::string body =
        R"({"image":{"uri":"base"},"entrypoint":["tail","-f","/dev/null"],"resourceLimits":{}})";
    const std::string answer =
        SendRaw(local_->port(),
                "POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                "OPEN-SANDBOX-API-KEY: key\r\nContent-Type: application/json\r\n"
                "Content-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
    ASSERT_NE(answer.find('{'), std::string::npos) << answer;
    sandbox_ = nlohmann::json::parse(answer.substr(answer.find('{')))["id"];
  }

  void StartBridge(std::vector<std::string> more) {
    more.insert(more.begin(), {"--listen=127.0.0.1:0", "--upstream=" + local_->url()});
    process_ = std::make_unique<BridgeProcess>(BridgeProcess::Options{
        .arguments = std::move(more), .environment = {"SANDBOX_BRIDGE_API_KEY=key"}});
    address_ = process_->WaitForAddress();
    ASSERT_NE(address_, "") << process_->log();
    channel_ = NewChannel();
    stub_ = v1::ExecService::NewStub(channel_);
  }
  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
  }
  std::unique_ptr<Execution> Execute(const std::string& shell) {
    return std::make_unique<Execution>(*stub_, sandbox_, shell);
  }
  void ExpectExit0(milliseconds bound) {
    const auto status = process_->Wait(bound);
    ASSERT_TRUE(status.has_value()) << "still there\n" << process_->log();
    EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << process_->log();
  }

  std::unique_ptr<local::LocalOpenSandbox> local_;
  std::string sandbox_;
  std::unique_ptr<BridgeProcess> process_;
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ExecService::Stub> stub_;
};

// DEP-02. With hundreds of streams: grpc_shutdown_test.
TEST_F(Drain, RunningCommandsFinishAndNewCallsAreRefused) {
  StartBridge({"--grace=60s"});
  std::vector<std::unique_ptr<Execution>> executions;
  executions.reserve(30);
  // They wait for a line each, so that all of them still run when the signal comes. The pipe stays
  // open until they have ended: a shell may come to it late.
  const std::string go = "/tmp/bridge-drain-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  const int pipe = open(go.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  for (int i = 0; i < 30; ++i) executions.push_back(Execute("read x < " + go + "; echo done"));
  for (auto& execution : executions) {
    ASSERT_TRUE(Eventually([&] { return execution->started() || execution->ended(); }));
    ASSERT_FALSE(execution->ended()) << execution->status();
  }
  process_->Signal(SIGTERM);
  ASSERT_TRUE(process_->WaitForLog("msg=draining"));
  // Refused in our words; then, when gRPC's goodbye has come, no longer connected. A call that
  // crosses it is ended by gRPC with one word (docs/adr/0012-drain-and-signals.md).
  ASSERT_TRUE(Eventually([&] {
    const absl::Status status = Call(channel_);
    const bool ours = ReasonOf(status) == R::ERROR_REASON_DRAINING && RetryAfterOf(status);
    const bool gone = status.code() == absl::StatusCode::kUnavailable && !ours;
    const bool crossed = status == absl::CancelledError(status.message());
    EXPECT_TRUE(status.ok() || ours || gone || crossed) << status;
    return gone;
  }));
  EXPECT_EQ(Call(channel_).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Call(NewChannel()).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(process_->Wait(milliseconds(300)), std::nullopt);

  const std::string lines(executions.size(), '\n');
  ASSERT_EQ(write(pipe, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  for (auto& execution : executions) {
    ASSERT_TRUE(Eventually([&] { return execution->ended(); }));
    EXPECT_TRUE(execution->status().ok()) << execution->status();
    EXPECT_EQ(execution->output(), "done\n");
    EXPECT_EQ(execution->outcome().exit_code(), 0);
    EXPECT_EQ(execution->outcome().kind_case(), v1::Outcome::kExitCode);
  }
  close(pipe);
  ExpectExit0(milliseconds(2000));
  unlink(go.c_str());
}

// What does not end within the grace is ended, killed in the sandbox too, and its caller is told
// why.
TEST_F(Drain, AfterTheGraceCommandsAreKilledAndTheirCallersTold) {
  StartBridge({"--grace=500ms"});
  const std::string marker = "4173." + std::to_string(getpid());
  std::vector<std::unique_ptr<Execution>> executions;
  executions.reserve(5);
  for (int i = 0; i < 5; ++i) executions.push_back(Execute("exec sleep " + marker));
  for (auto& execution : executions) {
    ASSERT_TRUE(Eventually([&] { return execution->started(); }));
  }
  ASSERT_TRUE(Eventually([&] { return ProcessesWith(marker).size() == 5; }));
  process_->Signal(SIGTERM);
  for (auto& execution : executions) {
    ASSERT_TRUE(Eventually([&] { return execution->ended(); }));
    EXPECT_EQ(ReasonOf(execution->status()), R::ERROR_REASON_DRAINING) << execution->status();
    EXPECT_TRUE(RetryAfterOf(execution->status()).has_value());
  }
  ExpectExit0(milliseconds(5000));
  EXPECT_TRUE(Eventually([&] { return ProcessesWith(marker).empty(); }));
}

// Commands did, what else was cut said that it drained and not whose it was.
TEST_F(Drain, EveryStreamThatIsCutNamesItsSandbox) {
  StartBridge({"--grace=100ms"});
  auto processes = v1::ProcessService::NewStub(channel_);
  v1::StartProcessRequest start;
  start.set_sandbox_id(sandbox_);
  start.mutable_spec()->set_shell("exec sleep 600");
  v1::StartProcessResponse process;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(processes->StartProcess(&context, start, &process).ok());
  }
  grpc::ClientContext attach_context, watch_context, usage_context, write_context;
  auto attached = processes->AttachProcess(&attach_context);
  v1::AttachProcessRequest attach;
  attach.mutable_attach()->set_sandbox_id(sandbox_);
  attach.mutable_attach()->set_process_id(process.process_id());
  v1::ProcessEvent event;
  ASSERT_TRUE(attached->Write(attach) && attached->Read(&event));

  auto files = v1::FileService::NewStub(channel_);
  v1::WatchDirectoryRequest watch;
  watch.set_sandbox_id(sandbox_);
  watch.set_path("/tmp");
  watch.mutable_keepalive_interval()->set_seconds(1);
  auto watched = files->WatchDirectory(&watch_context, watch);
  v1::WatchEventBatch changes;
  ASSERT_TRUE(watched->Read(&changes));

  v1::WriteFileResponse ignored;
  auto written = files->WriteFile(&write_context, &ignored);
  v1::WriteFileChunk chunk;
  chunk.mutable_header()->set_sandbox_id(sandbox_);
  chunk.mutable_header()->mutable_options()->set_path("/tmp/never-" + std::to_string(getpid()));
  ASSERT_TRUE(written->Write(chunk));

  auto sandboxes = v1::SandboxService::NewStub(channel_);
  v1::WatchResourceUsageRequest usage;
  usage.set_sandbox_id(sandbox_);
  auto measured = sandboxes->WatchResourceUsage(&usage_context, usage);
  v1::ResourceUsage sample;
  ASSERT_TRUE(measured->Read(&sample));

  process_->Signal(SIGTERM);
  while (attached->Read(&event)) {
  }
  while (watched->Read(&changes)) {
  }
  while (measured->Read(&sample)) {
  }
  for (const grpc::Status& ended :
       {attached->Finish(), watched->Finish(), measured->Finish(), written->Finish()}) {
    const absl::Status status = FromGrpcStatus(ended);
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_DRAINING) << status;
    EXPECT_EQ(MetadataOf(status)["sandbox_id"], sandbox_) << status;
  }
  ExpectExit0(milliseconds(5000));
}

// DEP-01: clients that look at health before each call never see a refused connection.
TEST_F(Drain, ClientsThatHonourHealthSeeNoFailure) {
  StartBridge({"--drain_delay=1s"});
  std::atomic<int> calls{0}, failures{0}, left{0};
  std::vector<std::thread> clients;
  clients.reserve(50);
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back([&, channel = NewChannel()] {
      while (true) {
        const int health = HealthOf(channel, "");
        if (health == 2) break;
        if (health != 1 || !Call(channel).ok()) {
          ++failures;
          break;
        }
        ++calls;
        std::this_thread::sleep_for(milliseconds(20));
      }
      ++left;
    });
  }
  ASSERT_TRUE(Eventually([&] { return calls > 200; }));
  EXPECT_EQ(left, 0);
  process_->Signal(SIGTERM);
  for (auto& client : clients) client.join();
  EXPECT_EQ(failures, 0);
  ExpectExit0(milliseconds(4000));
}

}  // namespace
}  // namespace bridge::testing
