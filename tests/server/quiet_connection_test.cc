// SPDX-License-Identifier: Apache-2.0
//
// STR-18: a proxy between client and bridge that cuts what is silent. Calls on which nobody has
// anything to say for long go through it all the same.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "bridge/local/local_opensandbox.h"
#include "bridge/service/status.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/fakes/raw_server.h"
#include "tests/server/server_fixture.h"

namespace bridge::testing {
namespace {

// A minute in the field, where the bridge says something three times as often.
constexpr std::chrono::milliseconds kIdleCut{3000};
const absl::Duration kKeepalive = absl::Milliseconds(500);
// Longer than the cut and a few signs of life together.
constexpr char kQuiet[] = "sleep 7; echo ok";

class QuietConnection : public ::testing::Test {
 protected:
  void Start(absl::Duration keepalive) {
    local::LocalOptions local_options;
    local_options.api_key = "key";
    local_options.isolation = local::runtime::Isolation::kNone;
    auto local = local::LocalOpenSandbox::Start(std::move(local_options));
    ASSERT_TRUE(local.ok()) << local.status();
    local_ = *std::move(local);
    ServerOptions options = TestOptions();
    options.services.upstream.url = local_->url();
    options.api_key = "key";
    options.keepalive_time = keepalive;
    bridge_ = std::make_unique<TestServer>(std::move(options));
    ASSERT_TRUE(bridge_->status().ok()) << bridge_->status();
    proxy_ = std::make_unique<RawServer>(
        [this](RawConnection& peer) { peer.RelayTo(bridge_->port(), kIdleCut); });
    v1::CreateSandboxRequest create;
    create.mutable_spec()->set_image("base");
    v1::CreateSandboxResponse created;
    grpc::ClientContext context;
    const grpc::Status status = v1::SandboxService::NewStub(bridge_->NewChannel())
                                    ->CreateSandbox(&context, create, &created);
    ASSERT_TRUE(status.ok()) << status.error_message();
    id_ = created.sandbox().sandbox_id();
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(proxy_->port()),
                                   grpc::InsecureChannelCredentials());
  }
  void TearDown() override {
    channel_.reset();
    proxy_.reset();
    if (bridge_ != nullptr) bridge_->Destroy();
  }

  // A unary call: not one byte of it travels before its end.
  absl::Status Run(v1::RunResponse* response) {
    v1::RunRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell(kQuiet);
    grpc::ClientContext context;
    return FromGrpcStatus(v1::ExecService::NewStub(channel_)->Run(&context, request, response));
  }

  // Keepalive events come once an hour: it is the connection that is kept, not the stream.
  absl::Status Execute(int keepalive_seconds, std::string* out) {
    v1::ExecuteRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell(kQuiet);
    request.mutable_keepalive_interval()->set_seconds(keepalive_seconds);
    grpc::ClientContext context;
    auto stream = v1::ExecService::NewStub(channel_)->Execute(&context, request);
    v1::ExecEvent event;
    while (stream->Read(&event)) {
      for (const auto& output : event.output_batch().outputs()) *out += output.data();
    }
    return FromGrpcStatus(stream->Finish());
  }

  std::unique_ptr<local::LocalOpenSandbox> local_;
  std::unique_ptr<TestServer> bridge_;
  std::unique_ptr<RawServer> proxy_;
  std::string id_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(QuietConnection, IsKeptThroughAProxyThatCutsSilence) {
  Start(kKeepalive);
  v1::RunResponse run;
  const absl::Status ran = Run(&run);
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(run.stdout(), "ok\n");
  std::string out;
  const absl::Status executed = Execute(3600, &out);
  EXPECT_TRUE(executed.ok()) << executed;
  EXPECT_EQ(out, "ok\n");
  EXPECT_EQ(proxy_->accepted(), 1) << "another connection was made";
}

// The stream's own sign of life does, too, where something between ends what HTTP/2 keeps alive.
TEST_F(QuietConnection, IsKeptByEventsAlone) {
  Start(absl::Hours(1));
  std::string out;
  const absl::Status executed = Execute(1, &out);
  EXPECT_TRUE(executed.ok()) << executed;
  EXPECT_EQ(out, "ok\n");
}

// So it is that which keeps it.
TEST_F(QuietConnection, IsCutWithoutASignOfLife) {
  Start(absl::Hours(1));
  std::string out;
  EXPECT_EQ(Execute(3600, &out).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace bridge::testing
