// SPDX-License-Identifier: Apache-2.0
//
// A bridge whose clients vanish by the thousand, and a bridge that is told to end while they work,
// leave nothing: no call, no process in the sandbox, no sandbox, no memory.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bridge/local/local_opensandbox.h"
#include "bridge/net/http.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/fakes/execd_process.h"
#include "tests/fakes/sanitized.h"
#include "tests/integration/exec_storm.h"
#include "tests/server/bridge_process.h"

namespace bridge::testing {
namespace {

namespace v1 = sandbox::bridge::v1;

// With a sanitizer everything is many times slower, and memory is not the program's.
constexpr int kStreams = kSanitized ? 200 : 1500;
constexpr bool kMemoryCounts = !kSanitized;
constexpr int kAtOnce = 100;
constexpr int kLongestMs = 150;

class CancelStorm : public ::testing::Test {
 protected:
  void SetUp() override {
    auto local = local::LocalOpenSandbox::Start({});
    ASSERT_TRUE(local.ok()) << local.status();
    local_ = *std::move(local);
    process_ = std::make_unique<BridgeProcess>(BridgeProcess::Options{
        .arguments = {"--listen=127.0.0.1:0", "--admin_listen=127.0.0.1:0",
                      "--upstream=" + local_->url()},
        .environment = {"SANDBOX_BRIDGE_API_KEY=unused", "PATH=/usr/bin:/bin"}});
    const std::string address = process_->WaitForAddress();
    ASSERT_NE(address, "") << process_->log();
    admin_ = process_->WaitForAdminPort();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    sandboxes_ = v1::SandboxService::NewStub(channel_);
  }

  static v1::CreateSandboxRequest NewSandbox() {
    v1::CreateSandboxRequest request;
    request.mutable_spec()->set_image("base");
    request.mutable_spec()->mutable_ttl()->set_seconds(600);
    return request;
  }
  std::string MustCreate() {
    grpc::ClientContext context;
    v1::CreateSandboxResponse response;
    const grpc::Status status = sandboxes_->CreateSandbox(&context, NewSandbox(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.sandbox().sandbox_id();
  }
  int SandboxCount() {
    grpc::ClientContext context;
    v1::ListSandboxesResponse response;
    const grpc::Status status = sandboxes_->ListSandboxes(&context, {}, &response);
    return status.ok() ? response.sandboxes_size() : -1;
  }

  // The background work of cut calls may take a moment.
  static bool Becomes(const std::function<bool()>& what,
                      absl::Duration patience = absl::Seconds(60)) {
    const absl::Time until = absl::Now() + patience;
    while (!what()) {
      if (absl::Now() > until) return false;
      std::this_thread::yield();
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }

  const std::string token_ = "7000." + std::to_string(getpid());  // of our commands alone
  const std::string command_ = "echo up; exec sleep " + token_;
  std::unique_ptr<local::LocalOpenSandbox> local_;
  std::unique_ptr<BridgeProcess> process_;
  int admin_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::SandboxService::Stub> sandboxes_;
};

TEST_F(CancelStorm, CutExecsLeaveNothing) {
  const std::string id = MustCreate();
  CutExecs(channel_, id, command_, kStreams / 10, kAtOnce, kLongestMs, 1);  // caches fill
  double before = 0;
  for (int round = 0; round < 3; ++round) {
    const StormResult storm =
        CutExecs(channel_, id, command_, kStreams, kAtOnce, kLongestMs, 100 + round);
    EXPECT_EQ(storm.refused, 0) << storm.first_refusal;
    EXPECT_TRUE(Becomes([&] { return ProcessesWith(token_).empty(); }))
        << ProcessesWith(token_).size() << " processes are left in round " << round;
    EXPECT_TRUE(Becomes([&] { return Metric(admin_, "sandbox_bridge_calls_running") <= 0; }));
    // The first round makes the bridge as large as a storm makes it; the others may not add to it.
    if (round == 0) before = Metric(admin_, "process_resident_memory_bytes");
  }
  // What a burst took is given back a few seconds after it.
  const auto grown = [&] { return Metric(admin_, "process_resident_memory_bytes") - before; };
  if (kMemoryCounts) {
    EXPECT_TRUE(Becomes([&] { return grown() < (16 << 20); })) << grown() << " more than before";
  }
  // What is left is connections that wait to be used again, which are limited.
  const int most = HttpClientOptions().max_idle_connections + 64;
  EXPECT_TRUE(Becomes([&] { return Metric(admin_, "process_open_fds") < most; }))
      << Metric(admin_, "process_open_fds");
}

// One that was answered belongs to its caller, also when the answer came just too late for it.
TEST_F(CancelStorm, CutCreationsLeaveNoSandbox) {
  std::atomic<int> deleted = 0;
  std::mt19937 random(7);
  std::uniform_int_distribution<int> life(1, 400);
  std::vector<std::thread> clients;
  clients.reserve(24);
  for (int i = 0; i < 24; ++i) {
    clients.emplace_back([this, &deleted, after = std::chrono::milliseconds(life(random))] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + after);
      v1::CreateSandboxResponse response;
      if (!sandboxes_->CreateSandbox(&context, NewSandbox(), &response).ok()) return;
      grpc::ClientContext farewell;
      v1::DeleteSandboxRequest request;
      request.set_sandbox_id(response.sandbox().sandbox_id());
      v1::DeleteSandboxResponse gone;
      EXPECT_TRUE(sandboxes_->DeleteSandbox(&farewell, request, &gone).ok());
      ++deleted;
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_TRUE(Becomes([&] { return Metric(admin_, "sandbox_bridge_background_tasks") == 0; }));
  const auto answered = [this] {
    return static_cast<int>(
        Metric(admin_, "sandbox_bridge_calls_total", {"CreateSandbox\"", "code=\"OK\""}));
  };
  EXPECT_TRUE(Becomes([&] { return SandboxCount() == std::max(answered(), 0) - deleted; }))
      << SandboxCount() << " sandboxes; " << answered() << " answered, " << deleted << " deleted";
  EXPECT_GT(Metric(admin_, "sandbox_bridge_sandboxes_reclaimed_total"), 0);
  EXPECT_EQ(Metric(admin_, "sandbox_bridge_sandboxes_leaked_total"), 0);
}

TEST_F(CancelStorm, SigtermWithOpenStreamsLeavesNoProcess) {
  const std::string id = MustCreate();
  OpenExecs execs(channel_, {id}, command_, 200);
  ASSERT_EQ(execs.started(), 200);
  // One that is just becoming `sleep` shows no command line.
  EXPECT_TRUE(Becomes([&] { return ProcessesWith(token_).size() == 200; }));
  process_->Signal(SIGTERM);
  EXPECT_TRUE(execs.AwaitEnd());
  const auto status = process_->Wait(std::chrono::seconds(60));
  ASSERT_TRUE(status.has_value()) << process_->log();
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << process_->log();
  EXPECT_EQ(ProcessesWith(token_).size(), 0u) << "the bridge ended before its kills were confirmed";
}

}  // namespace
}  // namespace bridge::testing
