// SPDX-License-Identifier: Apache-2.0
//
// Cases of failures that everything in front of a sandbox can make: proxies, gateways, silence and
// refusals, on bridges that know the sandbox and on such that do not.
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "tests/fakes/raw_server.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kProxyRoute[] = "/v1/sandboxes/{id}/proxy/{port}/{rest...}";

class ErrorCases : public BridgeOverLocal {
 protected:
  using Files = v1::FileService::Stub;

  absl::Status RunOne(const std::string& id, absl::Duration deadline = absl::Seconds(60)) {
    v1::RunResponse run;
    return Run(id, "echo once", &run, deadline);
  }
  // Of a bridge that need not have met the sandbox. `deadline` zero: none.
  absl::Status ReadOne(const std::string& id, const std::string& path,
                       absl::Duration deadline = absl::Seconds(60)) {
    auto files = v1::FileService::NewStub(channel_);
    v1::ReadFileRequest request;
    request.set_sandbox_id(id);
    request.set_path(path);
    grpc::ClientContext context;
    if (deadline > absl::ZeroDuration()) {
      context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    }
    const absl::Time start = absl::Now();
    auto stream = files->ReadFile(&context, request);
    v1::ReadFileChunk chunk;
    while (stream->Read(&chunk)) {
    }
    const absl::Status status = FromGrpcStatus(stream->Finish());
    took_ = absl::Now() - start;
    return status;
  }
  // What the server's proxy is asked for in a sandbox's place gets this answer.
  void ProxyAnswers(const std::string& answer) {
    Faults(std::string("rule { half: LIFECYCLE route: \"") + kProxyRoute + "\" action { answer { " +
           answer + " } } }");
  }
  size_t Proxied() { return Count("", kProxyRoute); }
};

// Hours of retries against a dead sandbox: the server's proxy says 502 for ever.
TEST_F(ErrorCases, ADeadSandboxBehindTheProxyIsGivenUp) {
  Connect(local_->url(), /*use_server_proxy=*/true);
  const std::string id = MustCreate();
  ASSERT_THAT(RunOne(id), IsOk());
  for (const bool known : {true, false}) {
    if (!known) Connect(local_->url(), /*use_server_proxy=*/true);
    local_->recorder().Clear();
    ProxyAnswers(R"(status: 502 body: '{"message":"Could not connect to the backend sandbox"}')");
    EXPECT_THAT(RunOne(id), HasReason("SANDBOX_UNREACHABLE")) << known;
    EXPECT_LE(took_, absl::Seconds(15)) << known;
    EXPECT_LE(Proxied(), 6u) << known;
    EXPECT_THAT(ReadOne(id, "/etc/passwd"), HasReason("SANDBOX_UNREACHABLE")) << known;
    EXPECT_LE(took_, absl::Seconds(15)) << known;
    EXPECT_LE(Proxied(), 12u) << known;
  }
}

// A gateway that has given the sandbox up is believed at once.
TEST_F(ErrorCases, AGatewayThatKnowsBetterIsNotAskedAgain) {
  Connect(local_->url(), /*use_server_proxy=*/true);
  const std::string id = MustCreate();
  for (const char* body :
       {R"({"code":"SANDBOX_BACKEND_UNREACHABLE","message":"m"})",
        R"({"code":"sandbox_not_found","message":"m"})", R"({"error":"sandbox_not_found"})"}) {
    Connect(local_->url(), /*use_server_proxy=*/true);
    local_->recorder().Clear();
    ProxyAnswers(std::string("status: 502 body: '") + body + "'");
    EXPECT_THAT(RunOne(id), HasReason("SANDBOX_UNREACHABLE")) << body;
    EXPECT_EQ(Proxied(), 1u) << body;
  }
}

// A wrong key looked like a slow sandbox.
TEST_F(ErrorCases, ARefusedKeyIsToldWithItsHop) {
  const std::string id = MustCreate();
  for (const int status : {401, 403}) {
    const std::string reason =
        status == 401 ? "UPSTREAM_UNAUTHENTICATED" : "UPSTREAM_PERMISSION_DENIED";
    const std::string answer = "status: " + std::to_string(status);
    Connect(local_->url());
    Faults("rule { half: EXECD action { answer { " + answer + " } } }");
    EXPECT_THAT(RunOne(id), AllOf(HasReason(reason), HasDetail("hop", "sandbox")));
    EXPECT_LE(took_, absl::Seconds(2));
    for (const char* hop : {"sandbox", "server"}) {
      Connect(local_->url(), /*use_server_proxy=*/true);
      const bool server = std::string(hop) == "server";
      ProxyAnswers(answer + (server ? R"( body: '{"code":"INVALID_API_KEY","message":"m"}')"
                                    : R"( body: '{"error":"Unauthorized"}')"));
      EXPECT_THAT(RunOne(id), AllOf(HasReason(reason), HasDetail("hop", hop)));
      EXPECT_LE(took_, absl::Seconds(2));
      local_->recorder().Clear();
      v1::Sandbox sandbox;
      EXPECT_THAT(Create(CreateRequest(), &sandbox),
                  AllOf(HasReason(reason), HasDetail("hop", hop)));
      EXPECT_LE(took_, absl::Seconds(2));
      EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
    }
  }
}

// Accepts, and never answers: everything blocked, and nobody knew whom it waited for.
TEST_F(ErrorCases, SilenceIsToldFromARefusalToConnect) {
  const std::string id = MustCreate();
  Faults("rule { half: LIFECYCLE action { never_answer: true } }");
  v1::Sandbox sandbox;
  const absl::Status silent = Get(id, &sandbox, absl::Seconds(2));
  EXPECT_EQ(silent.code(), absl::StatusCode::kDeadlineExceeded) << silent;
  EXPECT_LE(took_, absl::Seconds(3));
  EXPECT_THAT(silent, Not(HasMessage("accepts no connection")));
  EXPECT_THAT(silent, AnyOf(HasDetail("phase", "answer"), HasDetail("waiting_for", "get")));
  Faults("");
  local_.reset();
  EXPECT_THAT(Get(id, &sandbox, absl::Seconds(10)),
              AllOf(HasDetail("phase", "connect"), HasMessage("accepts no connection")));
}

// Without a deadline of the caller's, too.
TEST_F(ErrorCases, ASilentDaemonIsGivenUpWithoutADeadline) {
  const std::string id = MustCreate();
  const std::string good = MustCreate();
  ASSERT_THAT(RunOne(good), IsOk());
  Connect(local_->url());
  ASSERT_THAT(RunOne(good), IsOk());
  // All looks at the one sandbox's daemon, and none at the other's, which is known.
  Faults(R"(rule { half: EXECD route: "/ping" action { never_answer: true } }
            rule { half: EXECD route: "/proxy/{port}/ping" action { never_answer: true } })");
  std::atomic<bool> over = false;
  std::thread waiting([&] {
    EXPECT_THAT(ReadOne(id, "/etc/passwd", absl::ZeroDuration()), HasReason("SANDBOX_UNREACHABLE"));
    over = true;
  });
  int others = 0;
  const absl::Time until = absl::Now() + absl::Seconds(30);
  while (!over && absl::Now() < until) {
    v1::RunResponse run;
    ASSERT_THAT(Run(good, "true", &run), IsOk());
    EXPECT_LE(took_, absl::Seconds(5));
    ++others;
  }
  EXPECT_TRUE(over);
  EXPECT_GE(others, 3);
  Faults("");
  waiting.join();
}

// 404 from '/v1/v1' behind a gateway that has the service under a prefix.
TEST_F(ErrorCases, APrefixOfTheBaseUrlIsKept) {
  std::mutex mu;
  std::vector<std::string> asked;
  RawServer gateway([&](RawConnection& peer) {
    for (std::string head = peer.ReadHead(); !head.empty(); head = peer.ReadHead()) {
      {
        const std::lock_guard lock(mu);
        asked.push_back(head.substr(0, head.find_first_of("?\r", 4)));
      }
      const std::string body =
          R"({"code":"DOCKER::SANDBOX_NOT_FOUND","message":"Sandbox sb-1 not found."})";
      peer.Write("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
    }
  });
  for (const char* prefix : {"/gw/osb", "/gw/osb/", "/gw/osb/v1", "/gw/osb/v1/", "/gw/osb/v1//"}) {
    Connect(gateway.Url(prefix));
    v1::Sandbox sandbox;
    EXPECT_THAT(Get("sb-1", &sandbox), HasReason("SANDBOX_NOT_FOUND")) << prefix;
    const std::lock_guard lock(mu);
    EXPECT_THAT(asked, ElementsAre(HasSubstr("GET /gw/osb/v1/sandboxes/sb-1 HTTP/1.1"))) << prefix;
    asked.clear();
  }
}

// 'Unknown error', because the body had another shape.
TEST_F(ErrorCases, TheServersWordsInEveryShape) {
  const struct {
    const char* body;
    const char* words;
    const char* code;
  } kCases[] = {
      {R"({"code":"X","message":"m-7"})", "m-7", "X"},
      {R"({"detail":{"code":"X","message":"m-7"}})", "m-7", "X"},
      {R"({"detail":"m-7"})", "m-7", ""},
      {R"({"detail":[{"loc":["body","timeout"],"msg":"m-7"}]})", "body.timeout: m-7", ""},
      {R"({"error":"m-7"})", "m-7", ""},
      {R"("m-7")", "m-7", ""},
      {"null", "400", ""},
      {"", "400", ""},
      {"m-7 as plain text", "m-7 as plain text", ""},
  };
  for (const auto& c : kCases) {
    Faults(std::string(R"(rule { half: LIFECYCLE action { answer { status: 400
              header { name: "X-Request-ID" value: "req-4711" } body: ')") +
           c.body + "' } } }");
    v1::ListSandboxesResponse response;
    const absl::Status status =
        Call(*sandboxes_, &Sandboxes::ListSandboxes, v1::ListSandboxesRequest(), &response);
    EXPECT_THAT(status, AllOf(HasReason("UPSTREAM_REJECTED"), HasMessage(c.words),
                              HasDetail("upstream_request_id", "req-4711")))
        << c.body;
    if (*c.code != '\0') {
      EXPECT_THAT(status, AllOf(HasMessage(c.code), HasDetail("upstream_code", c.code)));
    }
  }
}

// Of a daemon the code and the request's id; its words may repeat what it was sent.
TEST_F(ErrorCases, ADaemonsRefusalHasItsCodeAndRequestId) {
  const std::string id = MustCreate();
  ASSERT_THAT(RunOne(id), IsOk());
  for (const std::string& stock : {std::string(), std::string(kStockDaemon)}) {
    Connect(local_->url());
    Faults(stock);
    ASSERT_THAT(RunOne(id), IsOk());
    Faults(stock + R"(rule { half: EXECD action { answer { status: 500
              header { name: "X-Request-ID" value: "req-4711" }
              body: '{"code":"RUNTIME_ERROR","message":"m-7"}' } } })");
    for (const absl::Status& failure : {RunOne(id), ReadOne(id, "/etc/passwd")}) {
      EXPECT_THAT(failure, AllOf(HasReason("UPSTREAM_FAILED"), HasDetail("upstream_status", "500"),
                                 HasDetail("upstream_code", "RUNTIME_ERROR"),
                                 HasDetail("upstream_request_id", "req-4711")));
      EXPECT_THAT(failure, Not(HasMessage("m-7")));
    }
    Faults("");
  }
}

// 'Invalid character <' instead of a cause, and nobody knew whose page it was.
TEST_F(ErrorCases, APageInTheDaemonsPlaceIsToldWithItsPlace) {
  const std::string id = MustCreate();
  v1::GetEndpointRequest request;
  request.set_sandbox_id(id);
  request.set_port(44772);
  v1::Endpoint endpoint;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::GetEndpoint, request, &endpoint), IsOk());
  const std::string url = endpoint.url().substr(7);
  const std::string place = url.substr(0, url.find('/'));
  const std::string page = R"(header { name: "Content-Type" value: "text/html" }
      body: '<html><title>Bad Gateway</title>)" +
                           std::string(2000, 'x') + "</html>'";
  for (const std::string& stock : {std::string(), std::string(kStockDaemon)}) {
    Connect(local_->url());
    Faults(stock);
    ASSERT_THAT(RunOne(id), IsOk());
    for (const std::string status : {"502", "503", "504"}) {
      Faults(stock + "rule { half: EXECD action { answer { status: " + status + " " + page +
             " } } }");
      for (const absl::Status& failure : {RunOne(id), ReadOne(id, "/etc/passwd")}) {
        EXPECT_THAT(failure, AllOf(HasReason("SANDBOX_UNREACHABLE"), HasMessage("at " + place),
                                   HasMessage("status " + status), HasMessage("with a web page"),
                                   HasDetail("endpoint", place)));
        EXPECT_LE(failure.message().size(), 500u);
      }
      Faults(stock + "rule { half: EXECD action { answer { status: " + status + " } } }");
      EXPECT_THAT(ReadOne(id, "/etc/passwd"),
                  AllOf(HasMessage("at " + place), HasDetail("endpoint", place)));
    }
    Faults("");
  }
}

// The delay was lost, and a command was sent again, or the odd body was a crash.
TEST_F(ErrorCases, ABusyDaemonIsAskedOnceAndItsDelayPassedOn) {
  const std::string id = MustCreate();
  const struct {
    int status;
    const char* delay;
    std::optional<absl::Duration> passed_on;
  } kCases[] = {
      {429, "2", absl::Seconds(2)},
      {503, "2", absl::Seconds(2)},
      {429, "Sun, 29 Nov 2026 16:46:40 GMT", absl::Seconds(5)},
      {503, "garbage", std::nullopt},
  };
  for (const std::string& stock : {std::string(), std::string(kStockDaemon)}) {
    Connect(local_->url());
    Faults(stock);
    ASSERT_THAT(RunOne(id), IsOk());
    for (const auto& c : kCases) {
      for (const char* body : {"{}", "", R"({"errors":[]})"}) {
        Faults(stock + "rule { half: EXECD action { answer { status: " + std::to_string(c.status) +
               R"( header { name: "Date" value: "Sun, 29 Nov 2026 16:46:35 GMT" })" +
               R"( header { name: "Retry-After" value: ")" + c.delay + "\" } body: '" + body +
               "' } } }");
        local_->recorder().Clear();
        const absl::Status status = RunOne(id);
        EXPECT_THAT(status, HasReason(c.status == 429 ? "QUOTA_EXCEEDED" : "SANDBOX_UNREACHABLE"));
        EXPECT_EQ(RetryAfterOf(status), c.passed_on) << c.delay;
        EXPECT_EQ(Count("POST", "/v1/exec") + Count("POST", "/command"), 1u) << c.delay;
        EXPECT_LE(took_, absl::Seconds(2)) << c.delay;
      }
    }
    Faults("");
  }
}

}  // namespace
}  // namespace bridge
