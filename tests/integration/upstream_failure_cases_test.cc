// SPDX-License-Identifier: Apache-2.0
//
// Cases of failing, lying and hostile upstreams, of endpoints, and of secrets.
#include <atomic>
#include <thread>
#include <vector>

#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "tests/fakes/raw_server.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kNginx[] =
    "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";

class UpstreamFailureCases : public BridgeOverLocal {
 protected:
  absl::Status List(absl::Duration deadline = absl::Seconds(60)) {
    v1::ListSandboxesResponse response;
    return Call(*sandboxes_, &Sandboxes::ListSandboxes, v1::ListSandboxesRequest(), &response,
                deadline);
  }
  absl::Status Port(const std::string& id, v1::EndpointRoute route, v1::Endpoint* endpoint) {
    v1::GetEndpointRequest request;
    request.set_sandbox_id(id);
    request.set_port(8000);
    request.set_route(route);
    return Call(*sandboxes_, &Sandboxes::GetEndpoint, request, endpoint);
  }
};

// 'Invalid character <' instead of a cause.
TEST_F(UpstreamFailureCases, WebPagesFromBetween) {
  for (const int status : {502, 503, 504}) {
    Faults(R"(rule { half: LIFECYCLE action { answer { status: )" + std::to_string(status) +
           R"( header { name: "Content-Type" value: "text/html" } body: ')" + kNginx + "' } } }");
    EXPECT_THAT(List(), AllOf(HasReason("UPSTREAM_UNAVAILABLE"), HasMessage("502 Bad Gateway"),
                              HasMessage("127.0.0.1"),
                              HasDetail("upstream_status", std::to_string(status))));
  }
  Faults(R"(rule { half: LIFECYCLE action { answer { status: 400
            header { name: "Content-Type" value: "text/html" }
            body: '<html><title>Corp</title><form>Please log in</form></html>' } } })");
  EXPECT_THAT(List(), AllOf(HasReason("UPSTREAM_UNAUTHENTICATED"), HasDetail("hop", "server")));
}

// The retry hint was lost.
TEST_F(UpstreamFailureCases, TooManyRequests) {
  Faults(R"(rule { half: LIFECYCLE method: "GET" times: 1 action { answer { status: 429
            header { name: "Retry-After" value: "1" } body: "{}" } } })");
  ASSERT_THAT(List(), IsOk());
  EXPECT_GE(took_, absl::Seconds(1));
  Faults(R"(rule { half: LIFECYCLE method: "POST" action { answer { status: 429
            header { name: "Retry-After" value: "7" } body: '{"errors":[]}' } } })");
  v1::Sandbox sandbox;
  const absl::Status status = Create(CreateRequest(), &sandbox);
  EXPECT_THAT(status, HasReason("QUOTA_EXCEEDED"));
  EXPECT_EQ(RetryAfterOf(status), absl::Seconds(7));
  EXPECT_EQ(Count("POST", "/v1/sandboxes"), 1u);
}

// Hours of retries against a dead sandbox.
TEST_F(UpstreamFailureCases, ASandboxThatAnswers502ForEver) {
  const std::string id = MustCreate();
  Connect(local_->url());  // a bridge that does not know it yet
  Faults(R"(rule { half: EXECD action { answer { status: 502 } } })");
  v1::RunResponse run;
  EXPECT_THAT(Run(id, "true", &run), HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_LE(took_, absl::Seconds(15));
  EXPECT_EQ(CommandsWith(""), 0);
}

// A wrong key looked like a slow sandbox.
TEST_F(UpstreamFailureCases, ADaemonThatRefuses) {
  for (const int status : {401, 403}) {
    local_->recorder().Clear();
    Faults("rule { half: EXECD action { answer { status: " + std::to_string(status) + " } } }");
    v1::Sandbox sandbox;
    EXPECT_THAT(
        Create(CreateRequest(), &sandbox),
        AllOf(HasReason(status == 401 ? "UPSTREAM_UNAUTHENTICATED" : "UPSTREAM_PERMISSION_DENIED"),
              HasDetail("hop", "sandbox")));
    EXPECT_LE(took_, absl::Seconds(2));
    EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
  }
}

// Accepts, and never answers.
TEST_F(UpstreamFailureCases, ASilentServer) {
  Faults("rule { half: LIFECYCLE action { never_answer: true } }");
  const absl::Status listed = List(absl::Seconds(2));
  EXPECT_EQ(listed.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LE(took_, absl::Seconds(3));
  v1::Sandbox sandbox;
  const absl::Status created = Create(CreateRequest(), &sandbox, absl::Seconds(2));
  EXPECT_EQ(created.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LE(took_, absl::Seconds(3));
  Faults("");
}

TEST_F(UpstreamFailureCases, ASilentDaemonDoesNotBlockTheOthers) {
  const std::string silent = MustCreate();
  const std::string good = MustCreate();
  Connect(local_->url());
  Faults(R"(rule { half: EXECD route: "/ping" times: 2 action { never_answer: true } })");
  std::thread waiting([&] {
    v1::RunRequest request;
    request.set_sandbox_id(silent);
    request.mutable_spec()->set_shell("true");
    v1::RunResponse response;
    grpc::ClientContext context;
    (void)execs_->Run(&context, request, &response);
  });
  ASSERT_TRUE(local_->recorder().WaitFor("GET", "/v1/sandboxes/{id}/endpoints/{port}", 3,
                                         absl::Seconds(10)));
  v1::Sandbox sandbox;
  ASSERT_THAT(Get(good, &sandbox), IsOk());
  EXPECT_LE(took_, absl::Milliseconds(500));
  waiting.join();
}

// After a server restart nothing worked until the bridge was restarted too.
TEST_F(UpstreamFailureCases, AServerThatGoesAndComesBack) {
  ASSERT_THAT(List(), IsOk());
  const int port = local_->port();
  local_.reset();
  EXPECT_THAT(List(), AllOf(HasReason("UPSTREAM_UNAVAILABLE"), HasDetail("phase", "connect")));
  EXPECT_LE(took_, absl::Seconds(3));
  local::LocalOptions options;
  options.api_key = kKey;
  options.port = port;
  options.intercept_execd = true;
  auto local = local::LocalOpenSandbox::Start(std::move(options));
  ASSERT_TRUE(local.ok()) << local.status();
  local_ = *std::move(local);
  ASSERT_THAT(List(), IsOk());
  MustCreate();
}

// An endpoint of the inside only: two minutes of silence, then a raw connect error.
TEST_F(UpstreamFailureCases, AnEndpointThatLeadsNowhere) {
  const std::string id = MustCreate();
  Connect(local_->url());
  ClosedPort closed;
  const std::string address = "127.0.0.1:" + std::to_string(closed.port());
  Faults(R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/endpoints/{port}" action { answer {
            status: 200 header { name: "Content-Type" value: "application/json" }
            body: '{"endpoint":")" +
         address + R"("}' } } })");
  v1::RunResponse run;
  EXPECT_THAT(Run(id, "true", &run),
              AllOf(HasReason("SANDBOX_UNREACHABLE"), HasDetail("endpoint", address),
                    HasMessage(address), HasMessage("--use_server_proxy")));
  EXPECT_LE(took_, absl::Seconds(10));
}

TEST_F(UpstreamFailureCases, EveryHeaderOfAnEndpointOnEveryRequest) {
  const std::string id = MustCreate();
  v1::GetEndpointRequest request;
  request.set_sandbox_id(id);
  request.set_port(44772);
  v1::Endpoint endpoint;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::GetEndpoint, request, &endpoint), IsOk());
  Connect(local_->url());
  local_->recorder().Clear();
  Faults(R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/endpoints/{port}" action { answer {
            status: 200 header { name: "Content-Type" value: "application/json" }
            body: '{"endpoint":")" +
         endpoint.url().substr(7) +
         R"(","headers":{"X-Sticky":"s","OpenSandbox-Ingress-To":"t"}}' } } })");
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "echo hi", &run), IsOk());
  int seen = 0;
  for (const auto& received : local_->recorder().requests()) {
    if (received.half != local::faults::EXECD) continue;
    ++seen;
    EXPECT_EQ(received.headers.Get("x-sticky"), "s") << received.target;
    EXPECT_EQ(received.headers.Get("opensandbox-ingress-to"), "t") << received.target;
  }
  EXPECT_GE(seen, 2);
}

// The account key went into the sandbox.
TEST_F(UpstreamFailureCases, TheKeyStaysAtTheServer) {
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "env", &run), IsOk());
  EXPECT_THAT(run.stdout(), Not(HasSubstr(kKey)));
  v1::Endpoint endpoint;
  ASSERT_THAT(Port(id, v1::ENDPOINT_ROUTE_DIRECT, &endpoint), IsOk());
  EXPECT_THAT(endpoint.DebugString(), Not(HasSubstr(kKey)));
  ASSERT_THAT(Port(id, v1::ENDPOINT_ROUTE_SERVER_PROXY, &endpoint), IsOk());
  EXPECT_THAT(endpoint.DebugString(), Not(HasSubstr(kKey)));
  for (const auto& request : local_->recorder().requests()) {
    const bool lifecycle = request.half == local::faults::LIFECYCLE;
    EXPECT_EQ(request.headers.Has("open-sandbox-api-key"), lifecycle) << request.target;
  }
}

// And was missing where the way leads through the server.
TEST_F(UpstreamFailureCases, TheKeyGoesAlongThroughTheServer) {
  Connect(local_->url(), /*use_server_proxy=*/true);
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "echo hi", &run), IsOk());
  EXPECT_EQ(run.stdout(), "hi\n");
  int proxied = 0;
  for (const auto& request : local_->recorder().requests()) {
    if (request.half != local::faults::LIFECYCLE) continue;
    EXPECT_TRUE(request.headers.Has("open-sandbox-api-key")) << request.target;
    if (request.path.find("/proxy/44772/") != std::string::npos) ++proxied;
  }
  EXPECT_GE(proxied, 2);
}

// Secrets in the words of errors.
TEST_F(UpstreamFailureCases, AServerThatRepeatsSecrets) {
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_spec()->mutable_image_auth()->set_username("u");
  request.mutable_spec()->mutable_image_auth()->set_password("CANARYPASS");
  request.mutable_spec()->add_env()->set_name("T");
  request.mutable_spec()->mutable_env(0)->set_value("CANARYENV");
  for (
      const char* answer :
      {R"(status: 422 body: '{"detail":[{"loc":["body"],"msg":"bad","input":{"env":{"T":"CANARYENV"}}}]}')",
       R"(status: 500 body: '{"code":"X","message":"u:CANARYPASS with CANARYKEY"}')"}) {
    Faults(std::string(R"(rule { half: LIFECYCLE method: "POST" action { answer { )") + answer +
           " } } }");
    v1::Sandbox sandbox;
    const absl::Status status = Create(request, &sandbox);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.ToString(), Not(HasSubstr("CANARY")));
  }
}

// 404 from '/v1/v1' or '//sandboxes'.
TEST_F(UpstreamFailureCases, SpellingsOfTheBaseUrl) {
  const std::string url = local_->url();
  const std::string host = url.substr(7);
  for (const std::string& spelling : {url, url + "/", url + "/v1", url + "/v1/", url + "/v1//",
                                      host, "HTTP://" + host, host + "/v1"}) {
    local_->recorder().Clear();
    Connect(spelling);
    EXPECT_THAT(List(), IsOk()) << spelling;
    EXPECT_EQ(Count("GET", "/v1/sandboxes"), 1u) << spelling;
  }
  for (const std::string& spelling :
       {std::string("ftp://h"), "http://u:p@" + host, url + "?q", std::string("http://")}) {
    InProcessBridge::Options options;
    options.services.upstream.url = spelling;
    const auto bridge = InProcessBridge::Create(std::move(options));
    ASSERT_FALSE(bridge.ok()) << spelling;
    EXPECT_THAT(bridge.status(), RejectsField("upstream")) << spelling;
    EXPECT_THAT(bridge.status().ToString(), Not(HasSubstr("u:p"))) << spelling;
  }
}

// A wrong base URL made every sandbox look deleted.
TEST_F(UpstreamFailureCases, AServerThatIsNoOpenSandbox) {
  RawServer other([](RawConnection& peer) {
    while (!peer.ReadHead().empty()) {
      peer.Write("HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\n\r\n{\"detail\":\"Not Found\"}");
    }
  });
  Connect(other.Url(""));
  v1::Sandbox sandbox;
  EXPECT_THAT(Get("sb-1", &sandbox), HasReason("UPSTREAM_PROTOCOL"));
  v1::DeleteSandboxResponse response;
  EXPECT_THAT(Delete("sb-1", &response), HasReason("UPSTREAM_PROTOCOL"));
}

// One slow call blocked the rest.
TEST_F(UpstreamFailureCases, SlowCallsDoNotHoldUpTheOthers) {
  const std::string id = MustCreate();
  const std::string other = MustCreate();
  Faults(R"(rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes" action {
            delay_seconds: 3 } })");
  std::vector<std::thread> slow;
  for (int i = 0; i < 3; ++i) {
    slow.emplace_back([&] {
      grpc::ClientContext context;
      v1::CreateSandboxResponse response;
      (void)sandboxes_->CreateSandbox(&context, CreateRequest(), &response);
    });
  }
  for (int i = 0; i < 10; ++i) {
    slow.emplace_back([&] {
      v1::RunRequest request;
      request.set_sandbox_id(id);
      request.mutable_spec()->set_shell("sleep 3");
      grpc::ClientContext context;
      v1::RunResponse response;
      (void)execs_->Run(&context, request, &response);
    });
  }
  ASSERT_TRUE(WaitFor("POST", "/v1/exec", 1));
  EXPECT_THAT(List(), IsOk());
  EXPECT_LE(took_, absl::Milliseconds(500));
  v1::Sandbox sandbox;
  EXPECT_THAT(Get(id, &sandbox), IsOk());
  EXPECT_LE(took_, absl::Milliseconds(500));
  auto files = v1::FileService::NewStub(channel_);
  v1::ReadSmallFileRequest read;
  read.set_sandbox_id(id);
  read.set_path("/etc/passwd");
  v1::ReadSmallFileResponse content;
  EXPECT_THAT(Call(*files, &v1::FileService::Stub::ReadSmallFile, read, &content), IsOk());
  EXPECT_LE(took_, absl::Seconds(2));
  v1::RunResponse run;
  EXPECT_THAT(Run(id, "true", &run), IsOk());
  EXPECT_LE(took_, absl::Seconds(2));
  v1::DeleteSandboxResponse deleted;
  EXPECT_THAT(Delete(other, &deleted), IsOk());
  EXPECT_LE(took_, absl::Seconds(2));
  for (std::thread& call : slow) call.join();
}

}  // namespace
}  // namespace bridge
