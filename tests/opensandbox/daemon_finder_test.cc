// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/daemon_finder.h"

#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::Not;

class DaemonFinderTest : public LifecycleFixture {
 protected:
  DaemonFinderTest() { fake_.Add("sb-1").address = "10.0.0.7:44064"; }
  absl::StatusOr<Endpoint> Find() {
    return Run([&] { return finder_.Find(Context(), "sb-1"); });
  }
};

TEST_F(DaemonFinderTest, PrefersTheRootOverExecdsOwnProxy) {
  const auto endpoint = Find();
  ASSERT_THAT(endpoint, IsOk());
  EXPECT_EQ(endpoint->url, "http://10.0.0.7:44064");
  EXPECT_EQ(fake_.Count("GET 10.0.0.7:44064/ping"), 1);
  EXPECT_EQ(fake_.Count("GET 10.0.0.7:44064/proxy/*"), 0);
}

TEST_F(DaemonFinderTest, FallsBackToTheFormThatWasGiven) {
  fake_.Script("GET 10.0.0.7:44064/ping",
               {.status = 404, .body = "404 page not found", .times = -1});
  const auto endpoint = Find();
  ASSERT_THAT(endpoint, IsOk());
  EXPECT_EQ(endpoint->url, "http://10.0.0.7:44064/proxy/44772");
}

TEST_F(DaemonFinderTest, ADaemonThatComesUpBetweenTwoTriesIsNotReachedByTheDetour) {
  fake_.Script("GET 10.0.0.7:44064/ping", {.refused = true});
  const auto endpoint = Find();
  ASSERT_THAT(endpoint, IsOk());
  EXPECT_EQ(endpoint->url, "http://10.0.0.7:44064");
}

TEST_F(DaemonFinderTest, TheKeyStaysAtTheServer) {
  ASSERT_THAT(Find(), IsOk());
  for (const SeenRequest& seen : fake_.requests()) {
    EXPECT_EQ(seen.headers.Has("open-sandbox-api-key"), seen.host == "srv:8080") << seen.host;
  }
}

TEST_F(DaemonFinderTest, EndpointHeadersTravel) {
  fake_.endpoint_headers = {{"X-EXECD-ACCESS-TOKEN", "t"}, {"OpenSandbox-Ingress-To", "x"}};
  const auto endpoint = Find();
  EXPECT_EQ(endpoint->headers.size(), 2u);
  EXPECT_EQ(fake_.requests().back().headers.Get("x-execd-access-token"), "t");
}

TEST_F(DaemonFinderTest, RefusalsNameTheHop) {
  fake_.Script(
      "GET 10.0.0.7:44064/ping",
      {.status = 401, .body = R"({"error":"Unauthorized: missing header X-EXECD-ACCESS-TOKEN"})"});
  EXPECT_THAT(Find(), AllOf(HasReason("UPSTREAM_UNAUTHENTICATED"), HasDetail("hop", "sandbox"),
                            HasMessage("X-EXECD-ACCESS-TOKEN")));
  // Refused is refused: the other form is not tried.
  EXPECT_EQ(fake_.Count("GET 10.0.0.7:44064/proxy/44772/ping"), 0);
  fake_.Script("GET 10.0.0.7:44064/ping", {.status = 403});
  EXPECT_THAT(Find(), AllOf(HasReason("UPSTREAM_PERMISSION_DENIED"), HasDetail("hop", "sandbox")));
}

TEST_F(DaemonFinderTest, NobodyListensThere) {
  fake_.Find("sb-1")->daemon_up = false;
  const auto endpoint = Find();
  EXPECT_THAT(endpoint,
              AllOf(HasReason("SANDBOX_UNREACHABLE"), HasDetail("endpoint", "10.0.0.7:44064"),
                    HasDetail("phase", "connect"), HasMessage("10.0.0.7:44064"),
                    HasMessage("--use_server_proxy")));
  EXPECT_TRUE(MayAnswerLater(endpoint.status()));
}

TEST_F(DaemonFinderTest, APausedSandboxIsNotWaitedForForever) {
  fake_.Find("sb-1")->state = "Paused";
  EXPECT_THAT(Find(), AllOf(HasReason("SANDBOX_UNREACHABLE"), HasDetail("phase", "answer")));
  EXPECT_LE(Elapsed(), absl::Seconds(7));
}

TEST_F(DaemonFinderTest, TheCallsDeadlineBoundsAPing) {
  fake_.Find("sb-1")->state = "Paused";
  EXPECT_THAT(Run([&] { return finder_.Find(Context(absl::Seconds(1)), "sb-1"); }), Not(IsOk()));
  EXPECT_LE(Elapsed(), absl::Milliseconds(1100));
}

TEST_F(DaemonFinderTest, SaysWhatThePingAnswered) {
  fake_.Script("GET 10.0.0.7*",
               {.status = 502,
                .body = R"({"message":"Could not connect to the backend sandbox"})",
                .times = -1});
  const auto endpoint = Find();
  EXPECT_THAT(endpoint, AllOf(HasReason("SANDBOX_UNREACHABLE"), HasDetail("upstream_status", "502"),
                              HasMessage("/ping answered 502: Could not connect")));
  EXPECT_TRUE(MayAnswerLater(endpoint.status()));
}

TEST_F(DaemonFinderTest, SomeAnswersAreFinal) {
  const struct {
    const char* body;
    const char* code;
  } kCases[] = {
      {R"({"code":"SANDBOX_BACKEND_UNREACHABLE","message":"m"})", "SANDBOX_BACKEND_UNREACHABLE"},
      {R"({"code":"sandbox_not_found","message":"m"})", "sandbox_not_found"},
      {R"({"error":"sandbox_not_found"})", "sandbox_not_found"},
  };
  for (const auto& c : kCases) {
    fake_.Script("GET 10.0.0.7*", {.status = 502, .body = c.body, .times = 2});
    const absl::Status status = Find().status();
    EXPECT_THAT(status,
                AllOf(HasReason("SANDBOX_UNREACHABLE"), HasDetail("upstream_code", c.code)));
    EXPECT_FALSE(MayAnswerLater(status)) << c.body;
  }
  fake_.Script("GET 10.0.0.7*", {.status = 502, .body = R"({"error":"not yet"})", .times = 2});
  EXPECT_TRUE(MayAnswerLater(Find().status()));
  EXPECT_FALSE(MayAnswerLater(Run([&] { return finder_.Find(Context(), "nope"); }).status()));
}

TEST_F(DaemonFinderTest, AnAddressThatIsStillMissing) {
  fake_.Script("GET /v1/sandboxes/sb-1/endpoints/44772",
               {.status = 404,
                .body = R"({"code":"KUBERNETES::POD_IP_NOT_AVAILABLE","message":"no IP yet"})"});
  const auto endpoint = Find();
  EXPECT_THAT(endpoint, HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_TRUE(MayAnswerLater(endpoint.status()));
}

TEST_F(DaemonFinderTest, AnEndpointThatIsNone) {
  for (const char* body : {R"({"endpoint":""})", R"({"endpoint":"ftp://h"})", R"({})"}) {
    fake_.Script("GET /v1/sandboxes/sb-1/endpoints/44772", {.status = 200, .body = body});
    EXPECT_THAT(Find(), HasReason("UPSTREAM_PROTOCOL")) << body;
  }
}

TEST_F(DaemonFinderTest, CancelledMeansCancelled) {
  fake_.Find("sb-1")->state = "Paused";
  FakeTimeTask<absl::StatusOr<Endpoint>> task(clock_, loop_,
                                              [&] { return finder_.Find(Context(), "sb-1"); });
  task.Pass(absl::Milliseconds(500));
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
}

class ProxiedDaemonFinderTest : public LifecycleFixture {
 protected:
  ProxiedDaemonFinderTest() : LifecycleFixture({}, {.through_server = true}) {
    fake_.required_key = "CANARYKEY";
    fake_.Add("sb-1");
  }
  absl::StatusOr<Endpoint> Find() {
    return Run([&] { return finder_.Find(Context(), "sb-1"); });
  }
};

TEST_F(ProxiedDaemonFinderTest, SendsTheKeyAndKeepsThePath) {
  const auto endpoint = Find();
  ASSERT_THAT(endpoint, IsOk());
  EXPECT_EQ(endpoint->url, "http://srv:8080/v1/sandboxes/sb-1/proxy/44772");
  EXPECT_TRUE(endpoint->through_server);
  EXPECT_EQ(fake_.requests().back().headers.Get("open-sandbox-api-key"), "CANARYKEY");
}

TEST_F(ProxiedDaemonFinderTest, TheKeyDoesNotFollowAnAnswerToAnotherHost) {
  fake_.Find("sb-1")->address = "evil:80";
  fake_.Script("GET /v1/sandboxes/sb-1/endpoints/44772",
               {.status = 200, .body = R"({"endpoint":"evil:80"})"});
  (void)Find();
  EXPECT_EQ(fake_.requests().back().host, "evil:80");
  EXPECT_FALSE(fake_.requests().back().headers.Has("open-sandbox-api-key"));
}

TEST_F(ProxiedDaemonFinderTest, TellsTheServersRefusalFromTheSandboxs) {
  fake_.Script("GET /v1/sandboxes/sb-1/proxy/*",
               {.status = 401, .body = R"({"code":"INVALID_API_KEY","message":"m"})"});
  EXPECT_THAT(Find(), AllOf(HasReason("UPSTREAM_UNAUTHENTICATED"), HasDetail("hop", "server")));
  fake_.Script("GET /v1/sandboxes/sb-1/proxy/*",
               {.status = 401, .body = R"({"error":"Unauthorized"})"});
  EXPECT_THAT(Find(), AllOf(HasReason("UPSTREAM_UNAUTHENTICATED"), HasDetail("hop", "sandbox")));
}

TEST_F(ProxiedDaemonFinderTest, TheProxyKnowsNoSuchSandbox) {
  fake_.Script("GET /v1/sandboxes/sb-1/proxy/*",
               {.status = 404, .body = R"({"code":"DOCKER::SANDBOX_NOT_FOUND","message":"m"})"});
  EXPECT_THAT(Find(), HasReason("SANDBOX_NOT_FOUND"));
}

TEST_F(ProxiedDaemonFinderTest, NoHintWhereItWouldNotHelp) {
  fake_.Find("sb-1")->daemon_up = false;
  EXPECT_THAT(Find(),
              AllOf(HasReason("SANDBOX_UNREACHABLE"), Not(HasMessage("--use_server_proxy"))));
}

}  // namespace
}  // namespace bridge
