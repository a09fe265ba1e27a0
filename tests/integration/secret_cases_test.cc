// SPDX-License-Identifier: Apache-2.0
//
// Cases of keys and tokens that were shown or sent where they do not belong, and of ids that
// reached what they do not name: through commands, files and processes, by both ways to a sandbox.
#include <gmock/gmock.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "bridge/base/error.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/fakes/raw_server.h"
#include "tests/integration/bridge_over_local.h"
#include "tests/server/bridge_process.h"
#include "tests/server/http_get.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Files = v1::FileService::Stub;
using Processes = v1::ProcessService::Stub;

class SecretCases : public BridgeOverLocal {
 protected:
  void SetUp() override {
    BridgeOverLocal::SetUp();
    Stubs();
  }
  void Stubs() {
    files_ = v1::FileService::NewStub(channel_);
    processes_ = v1::ProcessService::NewStub(channel_);
  }
  // One of everything that talks to a daemon. Answers what came back, as text.
  std::string UseEverything(const std::string& id) {
    std::string seen;
    v1::RunResponse run;
    EXPECT_THAT(Run(id, "env; cat", &run), IsOk());
    seen += run.DebugString();
    v1::WriteSmallFileRequest write;
    write.set_sandbox_id(id);
    write.mutable_options()->set_path("/tmp/f");
    write.set_data("content");
    v1::WriteFileResponse written;
    EXPECT_THAT(Call(*files_, &Files::WriteSmallFile, write, &written), IsOk());
    v1::ReadSmallFileRequest read;
    read.set_sandbox_id(id);
    read.set_path("/tmp/f");
    v1::ReadSmallFileResponse content;
    EXPECT_THAT(Call(*files_, &Files::ReadSmallFile, read, &content), IsOk());
    EXPECT_EQ(content.data(), "content");
    v1::StartProcessRequest start;
    start.set_sandbox_id(id);
    start.mutable_spec()->set_shell("env; exit 4");
    v1::StartProcessResponse started;
    EXPECT_THAT(Call(*processes_, &Processes::StartProcess, start, &started), IsOk());
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    auto stream = processes_->AttachProcess(&context);
    v1::AttachProcessRequest attach;
    attach.mutable_attach()->set_sandbox_id(id);
    attach.mutable_attach()->set_process_id(started.process_id());
    attach.mutable_attach()->set_offset(0);
    EXPECT_TRUE(stream->Write(attach));
    v1::ProcessEvent event;
    bool exited = false;
    while (stream->Read(&event)) {
      seen += event.DebugString();
      exited = exited || event.has_exited();
    }
    EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
    EXPECT_TRUE(exited);
    return seen;
  }

  std::unique_ptr<Files> files_;
  std::unique_ptr<Processes> processes_;
};

// The account key went into the sandbox, where any program can read it.
TEST_F(SecretCases, NothingThatGoesToADaemonCarriesTheKey) {
  EXPECT_THAT(UseEverything(MustCreate()), Not(HasSubstr(kKey)));
  std::set<std::string> routes;
  for (const auto& request : local_->recorder().requests()) {
    if (request.half != local::faults::EXECD) continue;
    routes.insert(request.path.substr(0, request.path.find('/', 1)));
    EXPECT_FALSE(request.headers.Has("open-sandbox-api-key")) << request.target;
    EXPECT_THAT(request.target + request.body, Not(HasSubstr(kKey)));
  }
  EXPECT_TRUE(routes.contains("/pty")) << "the upgrade to a WebSocket was among them";
}

// And it was missing where the way leads through the server, the WebSocket's upgrade included.
TEST_F(SecretCases, EverythingThatGoesThroughTheServerCarriesTheKey) {
  Connect(local_->url(), /*use_server_proxy=*/true);
  Stubs();
  UseEverything(MustCreate());
  bool upgrade = false;
  for (const auto& request : local_->recorder().requests()) {
    if (request.half != local::faults::LIFECYCLE) continue;
    EXPECT_TRUE(request.headers.Has("open-sandbox-api-key")) << request.target;
    upgrade = upgrade || request.path.find("/ws") != std::string::npos;
  }
  EXPECT_TRUE(upgrade);
}

// The answer to where a sandbox is names another host, which would have been told the key.
TEST_F(SecretCases, AnotherHostThatAnEndpointNamesIsNotToldTheKey) {
  const std::string id = MustCreate();
  std::mutex mutex;
  std::string heads;
  int asked = 0;
  RawServer stranger([&](RawConnection& peer) {
    for (std::string head = peer.ReadHead(); !head.empty(); head = peer.ReadHead()) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        heads += absl::AsciiStrToLower(head);
        ++asked;
      }
      peer.Write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
  });
  Connect(local_->url(), /*use_server_proxy=*/true);
  Stubs();
  Faults(R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/endpoints/{port}" action { answer {
            status: 200 header { name: "Content-Type" value: "application/json" }
            body: '{"endpoint":"127.0.0.1:)" +
         std::to_string(stranger.port()) + "/v1/sandboxes/" + id + R"(/proxy/44772"}' } } })");
  const auto fails_there = [&](const absl::Status& status) {
    EXPECT_THAT(status, Not(IsOk()));
    EXPECT_THAT(status.ToString(), Not(HasSubstr(kKey)));
    std::lock_guard<std::mutex> lock(mutex);
    EXPECT_GT(asked, 0) << status;
    asked = 0;
  };
  v1::RunResponse run;
  fails_there(Run(id, "true", &run));
  v1::StatRequest stat;
  v1::FileInfo file;
  stat.set_sandbox_id(id);
  stat.set_path("/");
  fails_there(Call(*files_, &Files::Stat, stat, &file));
  v1::StartProcessRequest start;
  v1::StartProcessResponse started;
  start.set_sandbox_id(id);
  start.mutable_spec()->set_shell("true");
  fails_there(Call(*processes_, &Processes::StartProcess, start, &started));
  std::lock_guard<std::mutex> lock(mutex);
  EXPECT_THAT(heads, Not(HasSubstr("open-sandbox-api-key")));
  EXPECT_THAT(heads, Not(HasSubstr(absl::AsciiStrToLower(kKey))));
}

// A crafted id called another route.
TEST_F(SecretCases, OddIdsReachNothing) {
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "true", &run), IsOk());
  const std::vector<std::string> odd = {"../sandboxes", "a/b", "a%2Fb", "a?x=1",
                                        "a#b",          "A B", "a\nb",  std::string(10'240, 'a'),
                                        "..",           ".",   ""};
  for (const std::string& text : odd) {
    // In the place of a sandbox's id: refused, and nothing is sent.
    const size_t before = local_->recorder().requests().size();
    const auto refused = [&](const absl::Status& status) {
      EXPECT_THAT(status, RejectsField("sandbox_id")) << text.substr(0, 20);
    };
    v1::GetExecRequest get;
    v1::ExecInfo info;
    get.set_sandbox_id(text);
    get.set_exec_id("o.0");
    refused(Call(*execs_, &Execs::GetExec, get, &info));
    v1::StatRequest stat;
    v1::FileInfo file;
    stat.set_sandbox_id(text);
    stat.set_path("/");
    refused(Call(*files_, &Files::Stat, stat, &file));
    v1::ListProcessesRequest list;
    v1::ListProcessesResponse listed;
    list.set_sandbox_id(text);
    refused(Call(*processes_, &Processes::ListProcesses, list, &listed));
    EXPECT_EQ(local_->recorder().requests().size(), before) << text.substr(0, 20);

    // In the place of what it names within a sandbox: not found or refused, and never another
    // route.
    const auto harmless = [&](const absl::Status& status) {
      EXPECT_TRUE(status.code() == absl::StatusCode::kNotFound ||
                  status.code() == absl::StatusCode::kInvalidArgument)
          << text.substr(0, 20) << ": " << status;
    };
    get.set_sandbox_id(id);
    get.set_exec_id(text);
    harmless(Call(*execs_, &Execs::GetExec, get, &info));
    for (const char* route : {"o.", "f.", "l."}) {
      get.set_exec_id(route + text);
      harmless(Call(*execs_, &Execs::GetExec, get, &info));
    }
    v1::SignalExecRequest signal;
    v1::SignalExecResponse signalled;
    signal.set_sandbox_id(id);
    signal.set_exec_id(text);
    signal.mutable_signal()->set_number(SIGTERM);
    harmless(Call(*execs_, &Execs::SignalExec, signal, &signalled));
    v1::GetProcessRequest process;
    v1::ProcessInfo described;
    process.set_sandbox_id(id);
    process.set_process_id(text);
    harmless(Call(*processes_, &Processes::GetProcess, process, &described));
    process.set_process_id("t." + text + ".0");
    harmless(Call(*processes_, &Processes::GetProcess, process, &described));
  }
  for (const auto& request : local_->recorder().requests()) {
    EXPECT_THAT(request.path, Not(HasSubstr(".."))) << request.target;
    if (request.half == local::faults::LIFECYCLE) {
      EXPECT_NE(request.method, "DELETE");
    }
  }
}

// Keys, tokens, input and file content were readable in logs, errors and metrics.
TEST_F(SecretCases, NothingSecretIsLoggedCountedOrAnswered) {
  const std::string other = MustCreate();  // of another bridge
  testing::BridgeProcess process(
      {.arguments = {"--listen=127.0.0.1:0", "--admin_listen=127.0.0.1:0", "--log_level=debug",
                     "--log_calls=all", "--upstream=" + local_->url()},
       .environment = {"SANDBOX_BRIDGE_API_KEY=" + std::string(kKey)}});
  const std::string address = process.WaitForAddress();
  ASSERT_NE(address, "") << process.log();
  channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  sandboxes_ = v1::SandboxService::NewStub(channel_);
  execs_ = v1::ExecService::NewStub(channel_);
  Stubs();

  std::string answers;  // all that was told of failures
  v1::CreateSandboxRequest create = CreateRequest();
  create.mutable_spec()->mutable_image_auth()->set_username("u");
  create.mutable_spec()->mutable_image_auth()->set_password("CANARY-password");
  create.mutable_spec()->add_env()->set_name("T");
  create.mutable_spec()->mutable_env(0)->set_value("CANARY-env");
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(create, &sandbox), IsOk());
  const std::string id = sandbox.sandbox_id();

  v1::RunRequest run;
  run.set_sandbox_id(id);
  run.mutable_spec()->set_stdin("CANARY-stdin");
  run.mutable_spec()->add_env()->set_name("X");
  run.mutable_spec()->mutable_env(0)->set_value("CANARY-exec-env");
  v1::RunResponse response;
  v1::WriteSmallFileRequest write;
  write.set_sandbox_id(id);
  write.set_data("CANARY-content");
  v1::WriteFileResponse written;
  const auto use_all = [&] {
    for (const char* line : {"exit 3 # CANARY-command", "kill -9 $$ # CANARY-command"}) {
      run.mutable_spec()->set_shell(line);
      answers += Call(*execs_, &Execs::Run, run, &response).ToString();
      answers += response.outcome().DebugString();
    }
    run.mutable_spec()->mutable_argv()->add_args("/no/such/CANARY-program");
    answers += Call(*execs_, &Execs::Run, run, &response).ToString();
    answers += response.outcome().DebugString();
    for (const char* path : {"/tmp/f", "/proc/none"}) {
      write.mutable_options()->set_path(path);
      answers += Call(*files_, &Files::WriteSmallFile, write, &written).ToString();
    }
  };
  use_all();
  for (const char* answer :
       {R"(status: 500 body: '{"code":"X","message":"u:CANARY-password CANARY-env CANARYKEY"}')",
        R"(status: 422 body: '{"detail":[{"loc":["body"],"msg":"x","input":"CANARY-stdin"}]}')",
        R"(status: 401 body: "CANARYKEY is wrong")"}) {
    Faults(std::string("rule { action { answer { ") + answer + " } } }");
    use_all();
    answers += Create(create, &sandbox).ToString();
  }
  // What opens a gateway on the way to a sandbox, and an address that is a secret.
  Faults(
      R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/endpoints/{port}" action { answer {
           status: 200 header { name: "Content-Type" value: "application/json" }
           body: '{"endpoint":"127.0.0.1:1/CANARY-signature",'
                 '"headers":{"X-Gateway-Token":"CANARY-token"}}' } } })");
  run.set_sandbox_id(other);
  write.set_sandbox_id(other);
  use_all();
  EXPECT_THAT(answers, HasSubstr("127.0.0.1:1"));
  Faults("");
  process.Signal(SIGUSR1);
  const std::string metrics = testing::HttpGet(process.WaitForAdminPort(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("ExecService/Run"));
  EXPECT_THAT(metrics, Not(HasSubstr("CANARY")));
  EXPECT_THAT(metrics, Not(HasSubstr(id)));
  process.Signal(SIGTERM);
  ASSERT_TRUE(process.Wait(std::chrono::milliseconds(20'000)).has_value());
  EXPECT_THAT(process.log(), HasSubstr("ExecService/Run"));
  EXPECT_THAT(process.log(), Not(HasSubstr("CANARY")));
  EXPECT_THAT(answers, Not(HasSubstr("CANARY")));
}

}  // namespace
}  // namespace bridge
