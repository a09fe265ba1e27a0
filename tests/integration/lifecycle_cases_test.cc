// SPDX-License-Identifier: Apache-2.0
//
// Lifecycle cases from the field, each named by what its user saw: the whole bridge against a whole
// local OpenSandbox that misbehaves. The waits and races behind them are tested one by one, on a
// clock that stands still, in tests/opensandbox.
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LifecycleCases : public BridgeOverLocal {
 protected:
  json CreateBody() {
    const auto posts = local_->recorder().Matching("POST", "/v1/sandboxes");
    return posts.empty() ? json() : json::parse(posts.back().body);
  }
  // How often a command with this text was sent.
  int CommandsWith(const std::string& text) {
    int count = 0;
    for (const auto& request : local_->recorder().Matching("POST", "/command")) {
      if (request.body.find(text) != std::string::npos) ++count;
    }
    return count;
  }
  absl::Status Renew(const std::string& id, int64_t seconds, v1::SetExpirationResponse* response) {
    v1::SetExpirationRequest request;
    request.set_sandbox_id(id);
    request.mutable_ttl()->set_seconds(seconds);
    return Call(*sandboxes_, &Sandboxes::SetExpiration, request, response);
  }
};

// Create succeeded, and the very first command failed with a proxy's 502.
TEST_F(LifecycleCases, TheFirstCommandRightAfterCreate) {
  for (const char* fault :
       {R"(answer { status: 502 body: '{"message":"Could not connect to the backend sandbox"}' })",
        R"(answer { status: 500 body: "An internal error occurred in the proxy" })",
        "reset: true"}) {
    Faults(std::string(R"(rule { half: EXECD times: 6 action { )") + fault + " } }");
    local_->recorder().Clear();
    const std::string id = MustCreate();
    v1::RunResponse run;
    ASSERT_THAT(Run(id, "echo hi", &run), IsOk());
    EXPECT_EQ(run.stdout(), "hi\n");
    EXPECT_EQ(run.outcome().exit_code(), 0);
    EXPECT_EQ(CommandsWith("echo hi"), 1);
  }
}

// Readiness never came, and the clean-up's 404 hid the cause.
TEST_F(LifecycleCases, NeverReadyAndTheDeleteSaysNotFound) {
  Faults(R"(rule { half: EXECD action { answer { status: 500 body: "boom" } } }
            rule { half: LIFECYCLE method: "DELETE" route: "/v1/sandboxes/{id}" times: 1
                   action { answer { status: 404
                     body: '{"code":"DOCKER::SANDBOX_NOT_FOUND","message":"gone"}' } } })");
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_ready_timeout()->set_seconds(3);
  v1::Sandbox sandbox;
  const absl::Status status = Create(request, &sandbox);
  EXPECT_THAT(status, AllOf(HasReason("READY_TIMEOUT"), HasMessage("500: boom")));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.ToString(), Not(HasSubstr("404")));
  EXPECT_GE(took_, absl::Seconds(3));
  EXPECT_LE(took_, absl::Seconds(6));
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
  const auto leaked = MetadataOf(status);
  ASSERT_TRUE(leaked.contains("leaked_sandbox_id"));  // the server still shows it
  v1::DeleteSandboxResponse response;
  EXPECT_THAT(Delete(leaked.at("leaked_sandbox_id"), &response), IsOk());
}

// The caller gave up during create, and the sandbox lived on.
TEST_F(LifecycleCases, ACallerWhoGivesUpWhileItStarts) {
  Faults(R"(rule { half: LIFECYCLE action { pending_seconds: 20 } })");
  grpc::ClientContext context;
  v1::CreateSandboxResponse response;
  grpc::Status status;
  std::thread call(
      [&] { status = sandboxes_->CreateSandbox(&context, CreateRequest(), &response); });
  ASSERT_TRUE(WaitFor("GET", "/v1/sandboxes/{id}", 1));
  context.TryCancel();
  call.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitFor("DELETE", "/v1/sandboxes/{id}", 1, absl::Seconds(5)));
}

TEST_F(LifecycleCases, ACallerWhoGivesUpBeforeTheAnswer) {
  Faults(R"(rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes"
                   action { delay_seconds: 2 } })");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(700));
  v1::CreateSandboxResponse response;
  const grpc::Status status = sandboxes_->CreateSandbox(&context, CreateRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 0u);
  EXPECT_TRUE(WaitFor("DELETE", "/v1/sandboxes/{id}", 1, absl::Seconds(10)));
}

// A wrong image name meant waiting the whole ready timeout with no reason.
TEST_F(LifecycleCases, AnImageThatCannotBePulled) {
  Faults(R"(rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes" action { answer {
            status: 500 body: '{"code":"DOCKER::SANDBOX_IMAGE_PULL_FAILED","message":"no such image nope:0"}' } } })");
  v1::Sandbox sandbox;
  EXPECT_THAT(Create(CreateRequest(), &sandbox),
              AllOf(HasReason("SANDBOX_FAILED"), HasMessage("no such image nope:0"),
                    HasDetail("upstream_code", "DOCKER::SANDBOX_IMAGE_PULL_FAILED")));
  EXPECT_LE(took_, absl::Seconds(1));
}

TEST_F(LifecycleCases, AnEntrypointThatEnds) {
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_spec()->add_entrypoint("sh");
  request.mutable_spec()->add_entrypoint("-c");
  request.mutable_spec()->add_entrypoint("exit 3");
  Faults(R"(rule { half: EXECD action { answer { status: 502 } } })");  // not before it is over
  v1::Sandbox sandbox;
  EXPECT_THAT(Create(request, &sandbox), AllOf(HasReason("SANDBOX_FAILED"),
                                               HasDetail("state", "Failed"), HasMessage("code 3")));
  EXPECT_LE(took_, absl::Seconds(10));
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
}

// Running, and execd never started because there was no entrypoint.
TEST_F(LifecycleCases, ACreateWithoutAnEntrypoint) {
  MustCreate();
  const json body = CreateBody();
  EXPECT_EQ(body["entrypoint"], json({"tail", "-f", "/dev/null"}));
  EXPECT_TRUE(body.contains("resourceLimits"));
  EXPECT_TRUE(body.contains("image"));
  EXPECT_FALSE(body.contains("snapshotId"));
}

// The command's or the readiness timeout was used as the sandbox's lifetime.
TEST_F(LifecycleCases, ThreeTimeoutsThatAreNotTheSame) {
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_ready_timeout()->set_seconds(20);
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(request, &sandbox), IsOk());
  EXPECT_EQ(CreateBody()["timeout"], 600);
  v1::RunRequest run;
  run.set_sandbox_id(sandbox.sandbox_id());
  run.mutable_spec()->set_shell("true");
  run.mutable_spec()->mutable_timeout()->set_seconds(5);
  v1::RunResponse response;
  ASSERT_THAT(Call(*execs_, &Execs::Run, run, &response), IsOk());
  EXPECT_EQ(Count("POST", "/v1/sandboxes/{id}/renew-expiration"), 0u);
}

// A second terminate reported an error for a sandbox that was gone.
TEST_F(LifecycleCases, DeletingTwice) {
  const std::string id = MustCreate();
  v1::DeleteSandboxResponse response;
  ASSERT_THAT(Delete(id, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
  local_->recorder().Clear();
  response.Clear();
  ASSERT_THAT(Delete(id, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_ALREADY_GONE);
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
}

// Delete answered 409 while another transition ran.
TEST_F(LifecycleCases, ADeleteThatMeetsATransition) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE method: "DELETE" times: 1 action { answer { status: 409 } } }
            rule { half: LIFECYCLE method: "DELETE" first: 2 times: 1 action { answer { status: 409
                   header { name: "Retry-After" value: "1" } } } })");
  v1::DeleteSandboxResponse response;
  ASSERT_THAT(Delete(id, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
  EXPECT_LE(took_, absl::Seconds(5));
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 3u);
}

// A paused sandbox could not be deleted, and nobody said so.
TEST_F(LifecycleCases, ADeleteThatFailsForGood) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE method: "DELETE" action { answer { status: 500
            body: '{"code":"X","message":"sandbox not in normal state"}' } } })");
  v1::DeleteSandboxResponse response;
  EXPECT_THAT(Delete(id, &response),
              AllOf(HasReason("UPSTREAM_FAILED"), HasMessage("not in normal state")));
  EXPECT_LE(Count("DELETE", "/v1/sandboxes/{id}"), 3u);
}

// 204, and the sandbox went on.
TEST_F(LifecycleCases, ADeleteThatIsOnlyAccepted) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE method: "DELETE" action { keep_on_delete: true } })");
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(id);
  request.mutable_wait_for_proof()->set_seconds(1);
  v1::DeleteSandboxResponse response;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::DeleteSandbox, request, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED);
  EXPECT_EQ(response.evidence(0).upstream_status(), 204);
  EXPECT_EQ(response.evidence(1).upstream_status(), 200);
}

// The answer to a create was lost, and a second try made a second sandbox.
TEST_F(LifecycleCases, ALostAnswerMakesNoSecondSandbox) {
  Faults(R"(rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes" times: 1
                   action { reset_after_bytes: 0 } }
            rule { half: LIFECYCLE action { hide_new_seconds: 1 } })");
  v1::CreateSandboxRequest request = CreateRequest();
  request.set_request_id("r-1");
  v1::CreateSandboxResponse first;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::CreateSandbox, request, &first), IsOk());
  EXPECT_EQ(Count("POST", "/v1/sandboxes"), 1u);
  v1::CreateSandboxResponse second;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::CreateSandbox, request, &second), IsOk());
  EXPECT_TRUE(second.adopted());
  EXPECT_EQ(second.sandbox().sandbox_id(), first.sandbox().sandbox_id());
  EXPECT_EQ(Count("POST", "/v1/sandboxes"), 1u);
}

// Renew answered 200 and nothing moved; or 400, raw.
TEST_F(LifecycleCases, RenewalsThatDoNotWhatTheySay) {
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(CreateRequest(), &sandbox), IsOk());
  v1::SetExpirationResponse response;
  ASSERT_THAT(Renew(sandbox.sandbox_id(), 120, &response), IsOk());
  EXPECT_LT(response.expires_at().seconds(), sandbox.expires_at().seconds());  // shortened
  const int64_t stored = response.expires_at().seconds();

  Faults(R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/renew-expiration" times: 1 action {
            answer { status: 200 header { name: "Content-Type" value: "application/json" }
                     body: '{"expiresAt":"2020-01-01T00:00:00Z"}' } } })");
  ASSERT_THAT(Renew(sandbox.sandbox_id(), 600, &response), IsOk());
  EXPECT_EQ(response.expires_at().seconds(), stored);  // unmoved, and said so

  Faults(R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/renew-expiration" times: 1 action {
            answer { status: 400 body: '{"code":"DOCKER::INVALID_EXPIRATION","message":"later only"}' } } })");
  EXPECT_THAT(Renew(sandbox.sandbox_id(), 600, &response),
              AllOf(HasReason("UPSTREAM_REJECTED"), HasMessage("later only")));
}

// The server's clock is not the bridge's.
TEST_F(LifecycleCases, ARenewalUnderASkewedClock) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE action { date_skew_seconds: 1800 } })");
  v1::SetExpirationResponse response;
  ASSERT_THAT(Renew(id, 600, &response), IsOk());
  const int64_t ahead = response.expires_at().seconds() - absl::ToUnixSeconds(absl::Now());
  EXPECT_NEAR(static_cast<double>(ahead), 1800 + 600, 5);
}

// 'No timeout' crashed; and a sandbox without one could silently not be given one.
TEST_F(LifecycleCases, ASandboxThatNeverExpires) {
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_spec()->set_never(true);
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(request, &sandbox), IsOk());
  EXPECT_FALSE(CreateBody().contains("timeout"));
  EXPECT_FALSE(sandbox.has_expires_at());
  v1::SetExpirationResponse response;
  EXPECT_THAT(Renew(sandbox.sandbox_id(), 600, &response), HasReason("NO_EXPIRY"));
}

// The second pause and resume failed, or lost files.
TEST_F(LifecycleCases, ThreeRoundsOfPauseAndResume) {
  const std::string id = MustCreate();
  v1::RunResponse run;
  for (int round = 1; round <= 3; ++round) {
    const std::string n = std::to_string(round);
    ASSERT_THAT(Run(id, "echo " + n + " > /tmp/r" + n + "; cat /tmp/r*", &run), IsOk());
    v1::PauseSandboxRequest pause;
    pause.set_sandbox_id(id);
    v1::PauseSandboxResponse paused;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::PauseSandbox, pause, &paused), IsOk());
    EXPECT_TRUE(paused.settled());
    // Nobody waits for a frozen sandbox: its state is told.
    EXPECT_THAT(Run(id, "true", &run),
                AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", "Paused")));
    v1::ResumeSandboxRequest resume;
    resume.set_sandbox_id(id);
    v1::ResumeSandboxResponse resumed;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ResumeSandbox, resume, &resumed), IsOk());
    EXPECT_TRUE(resumed.settled());
    ASSERT_THAT(Run(id, "cat /tmp/r*", &run), IsOk());
    EXPECT_EQ(std::count(run.stdout().begin(), run.stdout().end(), '\n'), round);
  }
}

// Resume returned too early, and the first call met a daemon that was not there yet.
TEST_F(LifecycleCases, TheFirstCallRightAfterResume) {
  const std::string id = MustCreate();
  v1::PauseSandboxRequest pause;
  pause.set_sandbox_id(id);
  v1::PauseSandboxResponse paused;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::PauseSandbox, pause, &paused), IsOk());
  local_->recorder().Clear();
  Faults(R"(rule { half: EXECD times: 8 action { answer { status: 502 } } })");
  v1::ResumeSandboxRequest resume;
  resume.set_sandbox_id(id);
  v1::ResumeSandboxResponse resumed;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ResumeSandbox, resume, &resumed), IsOk());
  EXPECT_TRUE(resumed.settled());
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "echo hi", &run), IsOk());
  EXPECT_EQ(run.stdout(), "hi\n");
  EXPECT_EQ(CommandsWith("echo hi"), 1);
}

// Label rules and filters: errors without the key's name, filters that found nothing.
TEST_F(LifecycleCases, MetadataFindsExactlyItsSandbox) {
  v1::CreateSandboxRequest request = CreateRequest();
  (*request.mutable_spec()->mutable_metadata())["example.com/team"] = "a.b_c-1";
  v1::Sandbox tagged;
  ASSERT_THAT(Create(request, &tagged), IsOk());
  MustCreate();
  v1::ListSandboxesRequest list;
  (*list.mutable_metadata())["example.com/team"] = "a.b_c-1";
  v1::ListSandboxesResponse listed;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ListSandboxes, list, &listed), IsOk());
  ASSERT_EQ(listed.sandboxes_size(), 1);
  EXPECT_EQ(listed.sandboxes(0).sandbox_id(), tagged.sandbox_id());
  EXPECT_EQ(listed.sandboxes(0).metadata().size(), 1u);
  const auto gets = local_->recorder().Matching("GET", "/v1/sandboxes");
  EXPECT_THAT(gets.back().target, HasSubstr("metadata=example.com%2Fteam%3Da.b_c-1"));
}

TEST_F(LifecycleCases, ListingInPages) {
  for (int i = 0; i < 5; ++i) MustCreate();
  v1::ListSandboxesRequest list;
  list.set_page_size(2);
  std::set<std::string> ids;
  for (int page = 0; page < 5; ++page) {
    v1::ListSandboxesResponse listed;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ListSandboxes, list, &listed), IsOk());
    for (const auto& sandbox : listed.sandboxes()) ids.insert(sandbox.sandbox_id());
    list.set_page_token(listed.next_page_token());
    if (listed.next_page_token().empty()) break;
  }
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_EQ(Count("GET", "/v1/sandboxes"), 3u);
}

// An exhausted pool read like a network problem.
TEST_F(LifecycleCases, NoCapacity) {
  for (const int status : {409, 429, 500, 503}) {
    Faults(
        R"(rule { half: LIFECYCLE method: "POST" action { answer { status: )" +
        std::to_string(status) +
        R"( body: '{"code":"KUBERNETES::POOL_EXHAUSTED","message":"pool is at poolMax"}' } } })");
    v1::Sandbox sandbox;
    const absl::Status result = Create(CreateRequest(), &sandbox);
    EXPECT_EQ(result.code(),
              status == 503 ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted)
        << status;
    EXPECT_THAT(result, HasMessage("pool is at poolMax"));
  }
}

// A missing sandbox looked like exit code 1.
TEST_F(LifecycleCases, NothingFoundIsNotNoSandbox) {
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "exit 1", &run), IsOk());
  EXPECT_EQ(run.outcome().exit_code(), 1);
  run.Clear();
  EXPECT_THAT(Run("00000000-0000-4000-8000-000000000000", "exit 1", &run),
              HasReason("SANDBOX_NOT_FOUND"));
  EXPECT_FALSE(run.has_outcome());
}

// Explicit nulls and odd times in answers.
TEST_F(LifecycleCases, AnswersWithNullsAndOddTimes) {
  const std::string id = MustCreate();
  Faults(
      R"(rule { half: LIFECYCLE method: "GET" route: "/v1/sandboxes/{id}" action { answer {
            status: 200 header { name: "Content-Type" value: "application/json" } body:
            '{"id":")" +
      id + R"(","metadata":null,"expiresAt":"2026-09-01t08:00:00.000+08:00","platform":null,)" +
      R"("image":null,"status":{"state":"Running","reason":null},"createdAt":null,"new":[1]}' } } })");
  v1::Sandbox sandbox;
  ASSERT_THAT(Get(id, &sandbox), IsOk());
  EXPECT_EQ(sandbox.state(), v1::SANDBOX_STATE_RUNNING);
  EXPECT_EQ(sandbox.expires_at().seconds(), 1788220800);
  EXPECT_FALSE(sandbox.has_created_at());
}

TEST_F(LifecycleCases, ADeadDaemonBehindARunningRecord) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: EXECD action { reset: true } })");
  v1::ProbeSandboxRequest request;
  request.set_sandbox_id(id);
  request.set_check_daemon(true);
  v1::ProbeSandboxResponse response;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ProbeSandbox, request, &response), IsOk());
  EXPECT_EQ(response.exists().sandbox().state(), v1::SANDBOX_STATE_RUNNING);
  EXPECT_EQ(response.exists().daemon(), v1::ProbeSandboxResponse::DAEMON_STATE_SILENT);
}

TEST_F(LifecycleCases, UsageOnceAndAsAStream) {
  const std::string id = MustCreate();
  v1::GetResourceUsageRequest request;
  request.set_sandbox_id(id);
  v1::ResourceUsage usage;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::GetResourceUsage, request, &usage), IsOk());
  EXPECT_GT(usage.cpu_count(), 0);
  EXPECT_GT(usage.memory_total_bytes(), usage.memory_used_bytes());
  grpc::ClientContext context;
  v1::WatchResourceUsageRequest watch;
  watch.set_sandbox_id(id);
  auto reader = sandboxes_->WatchResourceUsage(&context, watch);
  ASSERT_TRUE(reader->Read(&usage));
  EXPECT_GT(usage.at().seconds(), 0);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(LifecycleCases, DiagnosticsOfARunningSandbox) {
  v1::CreateSandboxRequest create = CreateRequest();
  create.mutable_spec()->add_env()->set_name("APP_TOKEN");
  create.mutable_spec()->mutable_env(0)->set_value("CANARYENV");
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(create, &sandbox), IsOk());
  for (const auto kind :
       {v1::GetDiagnosticsRequest::KIND_SUMMARY, v1::GetDiagnosticsRequest::KIND_INSPECT,
        v1::GetDiagnosticsRequest::KIND_EVENTS, v1::GetDiagnosticsRequest::KIND_LOGS}) {
    v1::GetDiagnosticsRequest request;
    request.set_sandbox_id(sandbox.sandbox_id());
    request.set_kind(kind);
    v1::GetDiagnosticsResponse response;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::GetDiagnostics, request, &response), IsOk()) << kind;
    EXPECT_THAT(response.text(), Not(HasSubstr("CANARY"))) << kind;
  }
}

}  // namespace
}  // namespace bridge
