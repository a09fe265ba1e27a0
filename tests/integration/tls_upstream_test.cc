// SPDX-License-Identifier: Apache-2.0
//
// An OpenSandbox behind TLS: with a private authority that the bridge was told, everything works,
// WebSockets included; with a certificate that proves nothing, nothing is sent.
#include <memory>
#include <string>
#include <vector>

#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/test_certificate.h"
#include "tests/integration/bridge_over_local.h"
#include "tests/server/bridge_process.h"
#include "tests/server/temp_folder.h"

namespace bridge {
namespace {

using Files = v1::FileService::Stub;
using Processes = v1::ProcessService::Stub;

class TlsUpstream : public BridgeOverLocal {
 protected:
  // The program, in front of the local OpenSandbox behind TLS.
  void Launch(const TestCertificate& certificate, const std::vector<std::string>& flags) {
    relay_ = std::make_unique<RawServer>(
        certificate, [this](RawConnection& peer) { peer.RelayTo(local_->port()); });
    testing::BridgeProcess::Options options;
    options.arguments = {"--listen=127.0.0.1:0", "--use_server_proxy",
                         "--upstream=https://localhost:" + std::to_string(relay_->port())};
    options.arguments.insert(options.arguments.end(), flags.begin(), flags.end());
    options.environment = {"SANDBOX_BRIDGE_API_KEY=" + std::string(kKey)};
    process_ = std::make_unique<testing::BridgeProcess>(std::move(options));
    const std::string address = process_->WaitForAddress();
    ASSERT_NE(address, "") << process_->log();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    sandboxes_ = v1::SandboxService::NewStub(channel_);
    execs_ = v1::ExecService::NewStub(channel_);
  }
  std::string Trust(const TestCertificate& certificate) {
    const std::string name = "ca" + std::to_string(++files_) + ".pem";
    return "--upstream_ca_file=" + folder_.Write(name, certificate.pem());
  }

  testing::TempFolder folder_;
  int files_ = 0;
  std::unique_ptr<RawServer> relay_;  // uses local_
  std::unique_ptr<testing::BridgeProcess> process_;
};

TEST_F(TlsUpstream, APrivateAuthorityIsTrustedForEverything) {
  const TestCertificate certificate;
  Launch(certificate, {Trust(certificate)});
  const std::string id = MustCreate();
  v1::RunResponse ran;
  ASSERT_THAT(Run(id, "printf 'a\\0b'; exit 3", &ran), IsOk());
  EXPECT_EQ(ran.stdout(), std::string("a\0b", 3));
  EXPECT_EQ(ran.outcome().exit_code(), 3);

  const auto files = v1::FileService::NewStub(channel_);
  v1::WriteSmallFileRequest write;
  write.set_sandbox_id(id);
  write.mutable_options()->set_path("/tmp/f");
  write.set_data(std::string(1 << 20, 'f'));
  v1::WriteFileResponse written;
  ASSERT_THAT(Call(*files, &Files::WriteSmallFile, write, &written), IsOk());
  v1::ReadSmallFileRequest read;
  read.set_sandbox_id(id);
  read.set_path("/tmp/f");
  v1::ReadSmallFileResponse content;
  ASSERT_THAT(Call(*files, &Files::ReadSmallFile, read, &content), IsOk());
  EXPECT_TRUE(content.data() == write.data());

  const auto processes = v1::ProcessService::NewStub(channel_);
  v1::StartProcessRequest start;
  start.set_sandbox_id(id);
  start.mutable_spec()->set_shell("echo held; exit 4");
  v1::StartProcessResponse started;
  ASSERT_THAT(Call(*processes, &Processes::StartProcess, start, &started), IsOk());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  auto stream = processes->AttachProcess(&context);
  v1::AttachProcessRequest attach;
  attach.mutable_attach()->set_sandbox_id(id);
  attach.mutable_attach()->set_process_id(started.process_id());
  attach.mutable_attach()->set_offset(0);
  ASSERT_TRUE(stream->Write(attach));
  v1::ProcessEvent event;
  std::string out;
  int code = -1;
  while (stream->Read(&event)) {
    if (event.has_output()) out += event.output().data();
    if (event.has_exited()) code = event.exited().outcome().exit_code();
  }
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  EXPECT_EQ(out, "held\n");
  EXPECT_EQ(code, 4);

  v1::DeleteSandboxResponse deleted;
  EXPECT_THAT(Delete(id, &deleted), IsOk());
  bool upgraded = false;
  for (const auto& request : local_->recorder().requests()) {
    upgraded = upgraded || request.path.find("/ws") != std::string::npos;
  }
  EXPECT_TRUE(upgraded) << "the process was held by a WebSocket";
}

TEST_F(TlsUpstream, ACertificateThatProvesNothingIsRefused) {
  const TestCertificate good;
  const TestCertificate other({.names = "DNS:elsewhere.example"});
  const TestCertificate old({.expires_in_seconds = -60});
  struct Case {
    const TestCertificate* shown;
    std::vector<std::string> flags;
    const char* says;
  };
  for (const Case& c :
       {Case{&good, {}, "self-signed certificate"}, Case{&other, {Trust(other)}, "subject name"},
        Case{&old, {Trust(old)}, "certificate has expired"},
        Case{&good, {Trust(old)}, "not trusted"},
        Case{&good, {"--upstream_ca_file=/no/such"}, "cannot be read"}}) {
    Launch(*c.shown, c.flags);
    v1::Sandbox sandbox;
    const absl::Status refused = Create(CreateRequest(), &sandbox);
    EXPECT_THAT(refused, HasReason("UPSTREAM_UNAVAILABLE")) << c.says;
    EXPECT_THAT(refused, HasMessage(c.says));
    EXPECT_THAT(refused, HasMessage("localhost:"));
    EXPECT_TRUE(local_->recorder().requests().empty()) << "nothing was sent, nor without TLS";
  }
}

}  // namespace
}  // namespace bridge
